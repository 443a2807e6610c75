// When orthonormalize treats a column as a sum of the columns before it, with the same numbers for
// the interpreter and for kernels. Both are shares of squared lengths.
#pragma once
#include "runtime/core/numbers/dtype.h"

namespace cinch::ir {

/// If a column depends on the columns before it, at most this share of it is left when they are
/// taken out, from rounding alone: eight units in the last place, squared. Types below f32 compute
/// in f32.
constexpr double least_left(DType dtype) {
  return dtype == kF64 ? 0x1p-98 : 0x1p-40;
}

/// If a column does not depend on the columns before it, taking them out a second time leaves more
/// than this share.
inline constexpr double kLeastKept = 0.25;

}  // namespace cinch::ir
