// Bars of lengths to scale, a line of text on either side.
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
  std::vector<BarPart> parts;  // one behind the other
  std::string text;            // behind the bar
};

/// The longest bar fills its place.
std::string bar_chart(const std::vector<Bar>& bars, std::string_view label);

/// Parts side by side that fill the whole width: each has its amount of bytes to scale. Names stand
/// above parts that have room for them.
struct StripPart {
  std::string name, css_class;
  std::int64_t bytes = 0;
};
std::string byte_strip(const std::vector<StripPart>& parts, std::string_view label);

}  // namespace cinch::driver
