#include "compiler/driver/page/svg.h"

#include <fmt/format.h>

#include "compiler/driver/page/pages.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

const char* anchor_name(Anchor anchor) {
  switch (anchor) {
    case Anchor::Start:
      return "start";
    case Anchor::Middle:
      return "middle";
    case Anchor::End:
      break;
  }
  return "end";
}

// A shape ends with this until something is put into it.
constexpr std::string_view kShapeEnd = "/>\n";

}  // namespace

void SvgDrawing::shape(std::string_view text) {
  last_ = shapes_.size();
  shapes_ += text;
  shapes_ += kShapeEnd;
}

void SvgDrawing::rect(double x, double y, double width, double height, std::string_view css_class,
                      std::string_view attributes) {
  shape(fmt::format(R"(<rect class="{}" x="{:.3f}" y="{:.1f}" width="{:.3f}" height="{:.1f}"{})",
                    css_class, x, y, width, height, attributes));
}

void SvgDrawing::circle(double x, double y, double radius, std::string_view css_class) {
  shape(fmt::format(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}")", css_class, x, y,
                    radius));
}

void SvgDrawing::path(std::string_view data, std::string_view css_class, double stroke_width,
                      std::string_view attributes) {
  shape(fmt::format(R"(<path class="{}" stroke-width="{:.1f}" d="{}"{})", css_class, stroke_width,
                    data, attributes));
}

void SvgDrawing::text(double x, double y, std::string_view text, Anchor anchor,
                      std::string_view css_class) {
  shapes_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor_name(anchor),
      css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class), escaped(text));
}

void SvgDrawing::title(std::string_view text) {
  const std::size_t name_at = last_ + 1;
  const std::string name = shapes_.substr(name_at, shapes_.find(' ', name_at) - name_at);
  shapes_.resize(shapes_.size() - kShapeEnd.size());
  shapes_ += fmt::format("><title>{}</title></{}>\n", escaped(text), name);
}

std::string SvgDrawing::done(double height, std::string_view label) const {
  return fmt::format(
      "<div class=\"scroll\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">\n{}</svg></div>\n",
      width_, height, escaped(label), shapes_);
}

double text_width_of(std::string_view text) {
  return 6.6 * static_cast<double>(num_characters(std::string(text)));
}

}  // namespace cinch::driver
