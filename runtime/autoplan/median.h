// Of times that were measured.
#pragma once
#include <algorithm>
#include <vector>

namespace cinch::rt {

/// Of some values; the larger one of two in the middle.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace cinch::rt
