// Which values a parameter of a type can be bound to, by a user or in a file.
#pragma once
#include <cmath>

#include "runtime/core/numbers/dtype.h"

namespace cinch {

/// Floats round to their type.
inline bool is_value_of(DType dtype, double value) {
  if (is_float(dtype)) return true;
  if (is_bool(dtype)) return value == 0 || value == 1;
  // Above 2^53 doubles skip integers, so a bound value could not be told from its neighbours.
  constexpr double kExact = 9007199254740992.0;
  return std::trunc(value) == value && std::fabs(value) <= kExact &&
         value >= static_cast<double>(min_int(dtype)) &&
         value <= static_cast<double>(max_int(dtype));
}

}  // namespace cinch
