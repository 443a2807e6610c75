#include "compiler/driver/page/charts.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/page/svg.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

constexpr double kBarsWidth = 920, kNameWidth = 130, kTextWidth = 270, kBarHeight = 18;
constexpr double kBarStep = 28;
constexpr double kStripTop = 22, kStripHeight = 34, kStripBottom = 80;

double amount_of(const Bar& bar) {
  double sum = 0;
  for (const BarPart& part : bar.parts) sum += part.amount;
  return sum;
}

}  // namespace

std::string bar_chart(const std::vector<Bar>& bars, std::string_view label) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, amount_of(bar));
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

}  // namespace cinch::driver
