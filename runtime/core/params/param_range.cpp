// Ranges of parameters.
#include "runtime/core/params/param_range.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "runtime/core/params/param_value.h"

namespace cinch::rt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double rounded(DType dtype, double value) {
  return is_float(dtype) && dtype != kF64 ? round_to_float(dtype, value) : value;
}

}  // namespace

// Rounding is monotone: it moves no value past a closed end, but may move one onto an open end.
bool is_within(const ParamRange& range, DType dtype, double value) {
  if (std::isnan(value)) return false;
  const double low = range.low.value_or(-kInfinity), high = range.high.value_or(kInfinity);
  const double held = rounded(dtype, value);
  return (range.low_open ? low < value && low < held : low <= value) &&
         (range.high_open ? value < high && held < high : value <= high);
}

std::optional<ParamRange> intersection(const std::optional<ParamRange>& a,
                                       const std::optional<ParamRange>& b) {
  if (!a || !b) return a ? a : b;
  ParamRange both = *a;
  if (b->low && (!both.low || *b->low >= *both.low)) {
    both.low_open = b->low_open || (both.low == b->low && both.low_open);
    both.low = b->low;
  }
  if (b->high && (!both.high || *b->high <= *both.high)) {
    both.high_open = b->high_open || (both.high == b->high && both.high_open);
    both.high = b->high;
  }
  return both;
}

std::string outside_text(const ParamRange& range, DType dtype, double value) {
  if (!is_within(range, kF64, value)) return fmt::format("{}", value);
  return fmt::format("{} ({} as {})", value, rounded(dtype, value), dtype_name(dtype));
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
