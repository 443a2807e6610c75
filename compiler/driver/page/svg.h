// SVG pictures in a page: CSS classes give them its colours.
#pragma once
#include <string>
#include <string_view>

namespace cinch::driver {

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

}  // namespace cinch::driver
