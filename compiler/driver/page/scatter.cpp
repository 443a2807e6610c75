#include "compiler/driver/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "compiler/driver/page/svg.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

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

}  // namespace cinch::driver
