// Self-contained HTML pages: style and pictures are in the file, and colours follow the reader's
// system setting.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

/// Escapes text for any place in HTML or SVG, also in attributes. Bytes that are not UTF-8, and
/// characters that XML does not allow, become U+FFFD.
std::string escaped(std::string_view text);

/// Returns the whole file. `body` is HTML; the title is text.
std::string html_page(std::string_view title, std::string_view body);

/// "<h2>…</h2>" around text.
std::string html_heading(int level, std::string_view text);
/// "<p>…</p>" around text.
std::string html_paragraph(std::string_view text, std::string_view css_class = "");

/// A highlighted number with its meaning.
struct Figure {
  std::string number, what;
};
std::string html_figures(const std::vector<Figure>& list);

/// Rows of text. Columns whose heading ends in "#" (which is not shown) hold numbers. `swatches`:
/// by row, the CSS class of the colour before its first cell; empty: none.
std::string html_table(const std::vector<std::string>& headings,
                       const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::string>& swatches = {});

/// The CSS class of the n-th colour of pictures; colours repeat after the last.
std::string colour_class(std::size_t n);

/// The page of `cinch explain --html`: a program, from the JSON report alone.
std::string explain_page(const nlohmann::json& report);

/// The page of `cinch report --html`: a folder of gradients, from the JSON report alone
/// (survey_report.h).
std::string survey_page(const nlohmann::json& report);

}  // namespace cinch::driver
