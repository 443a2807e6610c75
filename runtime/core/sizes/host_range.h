// Ranges of host expressions: what an operation can give when all that is known of its arguments is
// between which values they lie.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/sizes/host_expr.h"

namespace cinch {

/// Values of one type from `low` to `high`, false before true. A float range with an infinite end
/// may hold NaN, too. `is_none`: evaluation always fails.
struct HostRange {
  HostValue low, high;
  bool is_none = false;

  static HostRange point(HostValue value) { return {value, value}; }
  static HostRange none(HostType type) { return {{type, 0}, {type, 0}, true}; }
  /// All values of the type.
  static HostRange whole(HostType type);
  bool is_point() const { return !is_none && low == high; }
};

/// Holds every value that the operation gives for arguments in these ranges; an integer that leaves
/// 64 bits counts as the nearest that does not. Select: the branches' ranges follow the
/// condition's.
HostRange apply_to_ranges(HostOp op, HostType result, std::span<const HostRange> args);

}  // namespace cinch
