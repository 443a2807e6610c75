// Internal to host expressions: facts about operations, and their meaning on constants.
#pragma once

#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/sizes/host_expr.h"

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

/// The element-wise operation that computes the same on a device; leaves, casts and align_up have
/// none.
std::optional<ScalarOp> element_wise_op(HostOp op);
/// The other way round, for operands of the type; floor and its like on integers are the caller's.
std::optional<HostOp> host_op_of(ScalarOp op, HostType operands);

/// The bit of a leaf's kind; 0 for operations.
constexpr std::uint64_t leaf_bit(HostOp op) {
  static_assert(static_cast<int>(HostOp::Count) < 64, "leaves come first");
  return op <= HostOp::Count ? std::uint64_t{1} << static_cast<int>(op) : 0;
}

/// Is a node of this operation never negative, if `arg(i)` tells this for argument i? Exact for the
/// operations of sizes. False for constants and parameters, whose values the caller knows.
template <typename Arg>
bool gives_nonnegative(HostOp op, const Arg& arg) {
  switch (op) {
    case HostOp::N:
    case HostOp::Rows:
    case HostOp::Cols:
    case HostOp::World:
    case HostOp::MachineRanks:
    case HostOp::Step:
    case HostOp::Worker:
    case HostOp::Count:
    case HostOp::Abs:
    case HostOp::Sqrt:
    case HostOp::Exp:
    case HostOp::Exp2:
      return true;
    case HostOp::Add:
    case HostOp::Mul:
    case HostOp::Div:
    case HostOp::CeilDiv:
    case HostOp::AlignUp:
    case HostOp::Min:
      return arg(0) && arg(1);
    case HostOp::Max:
    case HostOp::BitAnd:
      return arg(0) || arg(1);
    case HostOp::Clamp:
    case HostOp::Select:
      return arg(1) && arg(2);
    case HostOp::Mod:
    case HostOp::Shr:
    case HostOp::Ceil:
    case HostOp::Floor:
    case HostOp::Round:
    case HostOp::Trunc:
    case HostOp::Cast:
      return arg(0);
    default:
      return false;
  }
}

/// Applies the operation to values of the types of its rule. The error is Overflow; its message
/// lacks the formula.
rt::Result<HostValue> apply_host_op(HostOp op, HostType result, std::span<const HostValue> args);

}  // namespace cinch
