// Ranges of host expressions: the results that an operation can have if its arguments lie in given
// ranges.
#pragma once

#include <cstdint>
#include <span>

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

}  // namespace cinch
