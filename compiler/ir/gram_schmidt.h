// When orthonormalize takes a column for a sum of those before it: the same numbers for the
// interpreter and for kernels. Both are shares of squared lengths.
#pragma once

#include "runtime/core/numbers/dtype.h"

namespace cinch::ir {

/// Taking the columns before it out of a column leaves at most this share of one that depends on
/// them: rounding alone. Eight units in the last place, squared; the types below f32 compute in it.
constexpr double least_left(DType dtype) {
  return dtype == kF64 ? 0x1p-98 : 0x1p-40;
}

/// Taking them out a second time leaves more than this share of a column that does not depend on
/// them.
inline constexpr double kLeastKept = 0.25;

}  // namespace cinch::ir
