// Pages of HTML that need nothing else: style and pictures are in the file, and colours follow what
// the reader's system prefers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

/// Text as it may be anywhere in HTML or SVG, also in attributes. Bytes that are no UTF-8, and
/// characters that XML does not take, become U+FFFD.
std::string escaped(std::string_view text);

/// The whole file. `body` is HTML; the title is text.
std::string html_page(std::string_view title, std::string_view body);

/// "<h2>…</h2>", of text.
std::string html_heading(int level, std::string_view text);
/// "<p>…</p>", of text.
std::string html_paragraph(std::string_view text, std::string_view css_class = "");

/// A number that stands out, and what it is.
struct Figure {
  std::string number, what;
};
std::string html_figures(const std::vector<Figure>& list);

/// Rows of text; columns whose heading ends in "#" (which is not shown) hold numbers. `swatches`:
/// by row, the colour before its first cell, as a class; empty: none.
std::string html_table(const std::vector<std::string>& headings,
                       const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::string>& swatches = {});

/// The class of the n-th colour of pictures; colours begin anew after the last.
std::string colour_class(std::size_t n);

}  // namespace cinch::driver
