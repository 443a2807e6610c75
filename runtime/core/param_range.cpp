// Ranges of parameters.
#include "runtime/core/param_range.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace cinch::rt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

bool is_within(const ParamRange& range, double value) {
  if (std::isnan(value)) return false;
  const double low = range.low.value_or(-kInfinity), high = range.high.value_or(kInfinity);
  return (range.low_open ? low < value : low <= value) &&
         (range.high_open ? value < high : value <= high);
}

std::string range_text(const ParamRange& range) {
  const bool shows_closed_low = range.low && !range.low_open;
  const bool shows_closed_high = range.high && !range.high_open;
  return fmt::format("{}{}, {}{}", shows_closed_low ? '[' : '(', range.low.value_or(-kInfinity),
                     range.high.value_or(kInfinity), shows_closed_high ? ']' : ')');
}

std::string range_text(DType dtype, const ParamRange& range) {
  if (is_int(dtype) && range.low && range.high && !range.low_open && !range.high_open) {
    return fmt::format("{}..={}", *range.low, *range.high);
  }
  return range_text(range);
}

}  // namespace cinch::rt
