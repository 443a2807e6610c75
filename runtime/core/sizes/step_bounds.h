// How small and how large a host expression gets as steps go by: what must be made before the first
// step for all that follow (a warm-up grows or shrinks sizes).
#pragma once

#include <cstdint>

#include "runtime/core/sizes/host_expr.h"

namespace cinch {

/// The last step: the number of a draw has room for 56 bits (docs/language_bits.md).
inline constexpr std::int64_t kMostStep = (std::int64_t{1} << 56) - 1;

struct StepBounds {
  std::int64_t least = 0, most = 0;
};

/// Of the Int expression `id` over steps `from` to kMostStep, the rest of `env` as it is: no step's
/// value is outside, and a bound is near the value of some step (a sixteenth away at most) where a
/// bounded search finds one. Steps for which eval fails count for nothing. Errors: those of eval
/// for step `from`.
rt::Result<StepBounds> bounds_over_steps(const HostExprPool& pool, HostExprId id,
                                         const HostEnv& env, std::int64_t from = 0);

}  // namespace cinch
