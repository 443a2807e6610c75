// The smallest and largest values of a host expression over all later steps. Whatever is made
// before the first step must suffice for all of them (a warm-up grows or shrinks sizes).
#pragma once

#include <cstdint>

#include "runtime/core/sizes/host_expr.h"

namespace cinch {

/// The last step: the number of a draw has 56 bits for it (docs/language_bits.md).
inline constexpr std::int64_t kMostStep = (std::int64_t{1} << 56) - 1;

struct StepBounds {
  std::int64_t least = 0, most = 0;
};

/// Bounds the Int expression `id` over steps `from` to kMostStep, with the rest of `env` fixed. No
/// step's value is outside. A bound is near the value of some step (a sixteenth away at most) if a
/// bounded search finds one. Steps for which eval fails are ignored. Errors: those of eval for step
/// `from`.
rt::Result<StepBounds> bounds_over_steps(const HostExprPool& pool, HostExprId id,
                                         const HostEnv& env, std::int64_t from = 0);

}  // namespace cinch
