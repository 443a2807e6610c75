// Ranges of host expressions: the results that an operation can have if its arguments lie in given
// ranges.
#pragma once

#include "runtime/core/sizes/host_expr.h"

namespace cinch {

/// Values of one type from `low` to `high`; false comes before true. A float range with an infinite
/// end may contain NaN, too. `is_none`: evaluation always fails.
struct HostRange {
  HostValue low, high;
  bool is_none = false;

  static HostRange point(HostValue value) { return {value, value}; }
  static HostRange none(HostType type) { return {{type, 0}, {type, 0}, true}; }
  /// All values of the type.
  static HostRange whole(HostType type);
  bool is_point() const { return !is_none && low == high; }
};

/// A range with every result of the operation for arguments in these ranges. An integer that
/// exceeds 64 bits counts as the nearest one that does not. For Select, the branches' ranges follow
/// the condition's.
HostRange apply_to_ranges(HostOp op, HostType result, std::span<const HostRange> args);

// The smallest and largest values of a host expression over all later steps. Whatever is made
// before the first step must suffice for all of them (a warm-up grows or shrinks sizes).

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
