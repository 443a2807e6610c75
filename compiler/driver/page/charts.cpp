#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "compiler/driver/page/pages.h"
#include "compiler/driver/report/text.h"
#include "runtime/core/ids.h"

namespace cinch::driver {
namespace {

constexpr double kBarsWidth = 920, kNameWidth = 130, kTextWidth = 270, kBarHeight = 18;
constexpr double kBarStep = 28;
constexpr double kStripTop = 22, kStripHeight = 34, kStripBottom = 80;

}  // namespace

std::string bar_chart(const std::vector<Bar>& bars, std::string_view label) {
  double most = 0;
  for (const Bar& bar : bars) {
    double amount = 0;
    for (const BarPart& part : bar.parts) amount += part.amount;
    most = std::max(most, amount);
  }
  const double scale = most > 0 ? (kBarsWidth - kNameWidth - kTextWidth) / most : 0;
  SvgDrawing drawing(kBarsWidth);
  double top = 2;
  for (const Bar& bar : bars) {
    drawing.text(kNameWidth - 10, top + 13, bar.name, Anchor::End);
    double at = kNameWidth;
    for (const BarPart& part : bar.parts) {
      drawing.rect(at, top, part.amount * scale, kBarHeight, part.css_class,
                   fmt::format(" data-amount=\"{}\"", part.amount));
      drawing.title(part.title);
      at += part.amount * scale;
    }
    drawing.text(at + 8, top + 13, bar.text);
    top += kBarStep;
  }
  return drawing.done(top, label);
}

std::string byte_strip(const std::vector<StripPart>& parts, std::string_view label) {
  double total = 0;
  for (const StripPart& part : parts) total += static_cast<double>(part.bytes);
  SvgDrawing drawing(kBarsWidth);
  double at = 0;
  for (const StripPart& part : parts) {
    const double width = total > 0 ? static_cast<double>(part.bytes) / total * kBarsWidth : 0;
    drawing.rect(at, kStripTop, width, kStripHeight, part.css_class,
                 fmt::format(" data-bytes=\"{}\"", part.bytes));
    const std::string bytes = counted(part.bytes, "byte");
    drawing.title(part.name + ": " + bytes);
    const double middle = at + width / 2;
    if (width > text_width_of(part.name) + 6)
      drawing.text(middle, kStripTop - 7, part.name, Anchor::Middle, "strong");
    if (width > text_width_of(bytes) + 6)
      drawing.text(middle, kStripTop + kStripHeight + 17, bytes, Anchor::Middle, "soft");
    at += width;
  }
  return drawing.done(kStripBottom, label);
}

namespace {

constexpr double kScatterWidth = 920, kScatterHeight = 560;
constexpr double kFieldLeft = 46, kFieldRight = 904, kFieldTop = 66, kFieldBottom = 510;
constexpr double kHighest = 1.2, kBeyondTop = 44, kDot = 4.5, kTextHeight = 13;

struct TextBox {
  double left, top, right, bottom;
  bool meets(const TextBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Powers of ten around all values; a value slightly below one of them is drawn beside its line.
struct RatioAxis {
  int first = 0, last = 1;

  explicit RatioAxis(const std::vector<ScatterPoint>& points) {
    double low = 1, high = 10;
    for (const ScatterPoint& point : points) {
      low = std::min(low, 1.02 * point.x);
      high = std::max(high, 1.15 * point.x);
    }
    first = static_cast<int>(std::floor(std::log10(low)));
    last = static_cast<int>(std::ceil(std::log10(high)));
  }
  double place(double x) const {
    return kFieldLeft + (std::log10(x) - first) / (last - first) * (kFieldRight - kFieldLeft);
  }
};

double error_place(double y) {
  return y > kHighest ? kBeyondTop : kFieldBottom - y / kHighest * (kFieldBottom - kFieldTop);
}

// The nearest free place for a name beside its point.
std::optional<TextBox> free_place(double x, double y, double width,
                                  const std::vector<TextBox>& taken) {
  constexpr std::array kAways = {8.0, 15.0, 23.0, 32.0};
  for (const double away : kAways) {
    const double middle = y - kTextHeight / 2;
    const TextBox places[] = {{x + away, middle, x + away + width, middle + kTextHeight},
                              {x - away - width, middle, x - away, middle + kTextHeight},
                              {x - width / 2, y - away - kTextHeight, x + width / 2, y - away},
                              {x - width / 2, y + away, x + width / 2, y + away + kTextHeight},
                              {x + 4, y - away - kTextHeight, x + 4 + width, y - away},
                              {x - 4 - width, y - away - kTextHeight, x - 4, y - away},
                              {x + 4, y + away, x + 4 + width, y + away + kTextHeight},
                              {x - 4 - width, y + away, x - 4, y + away + kTextHeight}};
    for (const TextBox& place : places) {
      const bool is_within = place.left > kFieldLeft + 2 && place.right < kScatterWidth - 2 &&
                             place.top > 18 && place.bottom < kFieldBottom - 1;
      const auto meets = [&](const TextBox& other) { return place.meets(other); };
      if (is_within && std::ranges::none_of(taken, meets)) return place;
    }
  }
  return std::nullopt;
}

void draw_axes(SvgDrawing& drawing, const RatioAxis& ratio, std::string_view x_title,
               std::string_view y_title) {
  for (int power = ratio.first; power <= ratio.last; ++power) {
    const double at = ratio.place(std::pow(10.0, power));
    drawing.path(fmt::format("M{:.1f} {}V{}", at, kFieldTop, kFieldBottom), "grid");
    drawing.text(at, kFieldBottom + 17, fmt::format("{:g}", std::pow(10.0, power)), Anchor::Middle,
                 "soft");
  }
  for (int tenths = 0; tenths <= 12; tenths += 2) {
    const double at = error_place(tenths / 10.0);
    drawing.path(fmt::format("M{} {:.1f}H{}", kFieldLeft, at, kFieldRight), "grid");
    drawing.text(kFieldLeft - 6, at + 4, fmt::format("{:g}", tenths / 10.0), Anchor::End, "soft");
  }
  drawing.text((kFieldLeft + kFieldRight) / 2, kFieldBottom + 38, x_title, Anchor::Middle);
  drawing.text(kFieldLeft, 14, y_title);
}

const char* anchor_name(Anchor anchor) {
  static constexpr const char* kNames[] = {"start", "middle", "end"};
  return name_in(kNames, anchor, "end");
}

// A shape ends with this until something is put into it.
constexpr std::string_view kShapeEnd = "/>\n";

}  // namespace

std::string scatter_chart(const std::vector<ScatterPoint>& points, std::string_view x_title,
                          std::string_view y_title) {
  SvgDrawing drawing(kScatterWidth);
  const RatioAxis ratio(points);
  draw_axes(drawing, ratio, x_title, y_title);
  std::vector<TextBox> taken;
  bool has_beyond = false;
  for (const ScatterPoint& point : points) {
    const double x = ratio.place(point.x), y = error_place(point.y);
    taken.push_back({x - kDot, y - kDot, x + kDot, y + kDot});
    has_beyond |= point.y > kHighest;
  }
  if (has_beyond) drawing.text(kFieldRight, 14, "top: larger errors", Anchor::End, "soft");
  for (const ScatterPoint& point : points) {
    const double x = ratio.place(point.x), y = error_place(point.y);
    const bool is_beyond = point.y > kHighest;
    const std::string name = is_beyond ? point.name + " " + three_digits(point.y) : point.name;
    if (const auto place = free_place(x, y, text_width_of(name), taken)) {
      taken.push_back(*place);
      drawing.text((place->left + place->right) / 2, place->bottom - 3, name, Anchor::Middle,
                   "small");
    }
  }
  for (const ScatterPoint& point : points) {
    drawing.circle(ratio.place(point.x), error_place(point.y), kDot, point.css_class);
    drawing.title(point.title);
  }
  return drawing.done(kScatterHeight, "ratio and error of every program");
}

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
