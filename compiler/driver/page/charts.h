// Pictures of pages, as SVG.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
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
