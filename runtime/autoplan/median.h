// The median of measured times.
#pragma once
#include <algorithm>
#include <vector>

namespace cinch::rt {

/// `values` must not be empty. Returns the larger one of two in the middle.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace cinch::rt
