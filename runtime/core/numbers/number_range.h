// The range of a number's values, as analyses find it, and of what is computed from it; the median
// of measurements.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "runtime/core/numbers/scalar_eval.h"

namespace cinch {

/// A closed interval of numbers; zeros of both signs count as 0.
struct NumberRange {
  double low = 0, high = 0;
  bool may_be_nan = false;

  bool is_within(double least, double most) const {
    return !may_be_nan && low >= least && high <= most;
  }
};

/// All numbers of the type, if nothing is known. The greatest 64-bit number is rounded up.
inline NumberRange all_numbers(DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_bool(dtype)) return {0, 1};
  if (!is_int(dtype)) return {-kInfinity, kInfinity, true};
  const double top = std::ldexp(1.0, dtype.bits - (is_signed_int(dtype) ? 1 : 0)) - 1;
  return {is_signed_int(dtype) ? -top - 1 : 0, top};
}

/// NaN without values; the larger one of two in the middle.
inline double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  return values[values.size() / 2];
}

inline NumberRange joined(const NumberRange& a, const NumberRange& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.may_be_nan || b.may_be_nan};
}

inline NumberRange negated(const NumberRange& x) {
  return {-x.high, -x.low, x.may_be_nan};
}

/// The range of the minimum of two numbers. A NaN gives way to the other number, so that the
/// minimum is NaN only if both are.
inline NumberRange smaller(const NumberRange& a, const NumberRange& b) {
  NumberRange range = {std::min(a.low, b.low), std::min(a.high, b.high)};
  if (a.may_be_nan) range.high = std::max(range.high, b.high);
  if (b.may_be_nan) range.high = std::max(range.high, a.high);
  range.may_be_nan = a.may_be_nan && b.may_be_nan;
  return range;
}

inline NumberRange larger(const NumberRange& a, const NumberRange& b) {
  return negated(smaller(negated(a), negated(b)));
}

/// The range of an element-wise operation's results for operands of the type in these ranges. An
/// integer that may leave its type wraps, so it may have any value. All numbers of the type if
/// nothing is known; operations with results of another type are not known.
NumberRange range_of_scalar(ScalarOp op, DType dtype, std::span<const NumberRange> operands);
/// The range of an element-wise conversion. Integers saturate (floats after truncation), and NaN
/// becomes 0.
NumberRange range_of_convert(const NumberRange& x, DType to);

}  // namespace cinch
