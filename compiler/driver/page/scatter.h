// Points with names, ratio against error, as in docs/gallery.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

struct ScatterPoint {
  double x = 0, y = 0;  // x is above 0
  std::string name, css_class, title;
};

/// x on a logarithmic axis; what is above 1.2 on the y axis is drawn over it, with its number. A
/// name for which there is no room is left out: a pointer over the point tells it.
std::string scatter_chart(const std::vector<ScatterPoint>& points, std::string_view x_title,
                          std::string_view y_title);

}  // namespace cinch::driver
