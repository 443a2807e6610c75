// Self-contained HTML pages: style and pictures are in the file, and colours follow the reader's
// system setting.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
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
/// (text.h).
std::string survey_page(const nlohmann::json& report);

// SVG pictures in a page: CSS classes give them its colours.

enum class Anchor { Start, Middle, End };

class SvgDrawing {
 public:
  explicit SvgDrawing(double width) : width_(width) {}

  double width() const { return width_; }
  /// `attributes`: further attributes, as SVG text (" data-bytes=\"64\"").
  void rect(double x, double y, double width, double height, std::string_view css_class,
            std::string_view attributes = "");
  void circle(double x, double y, double radius, std::string_view css_class);
  void path(std::string_view data, std::string_view css_class, double stroke_width = 1,
            std::string_view attributes = "");
  void text(double x, double y, std::string_view text, Anchor anchor = Anchor::Start,
            std::string_view css_class = "");
  /// Sets the text that a pointer over the last shape (rect, circle or path) shows.
  void title(std::string_view text);

  /// Returns "<svg …>…</svg>" in a box that scrolls if it is narrow; `label` describes the picture
  /// to readers who cannot see it.
  std::string done(double height, std::string_view label) const;

 private:
  void shape(std::string_view text);

  double width_;
  std::size_t last_ = 0;  // where the last shape begins
  std::string shapes_;
};

/// The approximate width of a text of 12 pixels.
double text_width_of(std::string_view text);

// Pictures of pages, as SVG.

struct BarPart {
  double amount = 0;
  std::string css_class, title;
};
struct Bar {
  std::string name;
  std::vector<BarPart> parts;  // drawn one after the other
  std::string text;            // after the bar
};

/// Bars of lengths to scale, with text on both sides; the longest bar fills the width.
std::string bar_chart(const std::vector<Bar>& bars, std::string_view label);

/// Parts side by side that fill the whole width, each in proportion to its bytes. A part with
/// enough room has its name above it.
struct StripPart {
  std::string name, css_class;
  std::int64_t bytes = 0;
};
std::string byte_strip(const std::vector<StripPart>& parts, std::string_view label);

struct ScatterPoint {
  double x = 0, y = 0;  // x is above 0
  std::string name, css_class, title;
};

/// Named points, ratio against error, as in docs/gallery. x has a logarithmic axis. A point
/// above 1.2 on the y axis is drawn at the top, with its number. A name for which there is no room
/// is omitted; a pointer over the point shows it.
std::string scatter_chart(const std::vector<ScatterPoint>& points, std::string_view x_title,
                          std::string_view y_title);

/// The kernels of an entry: input arrays on the left, the arrays that they make on the right, and
/// on every line the bytes that move. `kernels` is the result of EntryKernels::list. Small kernels
/// that are not sweeps share one box.
std::string kernel_graph(const nlohmann::json& kernels, std::string_view label);

}  // namespace cinch::driver
