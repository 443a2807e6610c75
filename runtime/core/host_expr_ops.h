// Inside the host expressions: facts of the operations and their meaning on constants.
#pragma once

#include <span>

#include "runtime/core/host_expr.h"

namespace cinch {

enum class HostRule : std::uint8_t {
  Leaf,
  Arith,
  Float,
  Compare,
  Logic,
  Integer,
  Select,
  Cast,
};

HostRule host_op_rule(HostOp op);

/// The operation on values of the types that its rule asks for. The error is Overflow, its message
/// lacks the formula.
rt::Result<HostValue> apply_host_op(HostOp op, HostType result, std::span<const HostValue> args);

}  // namespace cinch
