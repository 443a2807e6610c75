// Draws named points, ratio against error, as in docs/gallery.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

struct ScatterPoint {
  double x = 0, y = 0;  // x is above 0
  std::string name, css_class, title;
};

/// x has a logarithmic axis. A point above 1.2 on the y axis is drawn at the top, with its number.
/// A name for which there is no room is omitted; a pointer over the point shows it.
std::string scatter_chart(const std::vector<ScatterPoint>& points, std::string_view x_title,
                          std::string_view y_title);

}  // namespace cinch::driver
