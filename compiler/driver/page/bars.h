// Draws bars of lengths to scale, with text on both sides.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

struct BarPart {
  double amount = 0;
  std::string css_class, title;
};
struct Bar {
  std::string name;
  std::vector<BarPart> parts;  // drawn one after the other
  std::string text;            // after the bar
};

/// Draws a chart; the longest bar fills the width.
std::string bar_chart(const std::vector<Bar>& bars, std::string_view label);

/// Parts side by side that fill the whole width, each in proportion to its bytes. A part with
/// enough room has its name above it.
struct StripPart {
  std::string name, css_class;
  std::int64_t bytes = 0;
};
std::string byte_strip(const std::vector<StripPart>& parts, std::string_view label);

}  // namespace cinch::driver
