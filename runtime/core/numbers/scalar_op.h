// The enum of element-wise operations and its facts, generated from scalar_op.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cinch {

enum class ScalarOp : std::uint8_t {
#define SCALAR_OP(name, arity, operands, result, cost, meaning) name,
#include "runtime/core/numbers/scalar_op.def"
};

/// What an operation takes: anything, integers and floats, floats, integers, integers and bool.
enum class ScalarOperands : std::uint8_t { Any, Number, Real, Int, Bits };
/// What an operation gives: its operands' type, bool, or u32 (counts of bits).
enum class ScalarResult : std::uint8_t { Same, Bool, U32 };

struct ScalarOpInfo {
  std::string_view name;
  int arity;
  ScalarOperands operands;
  ScalarResult result;
  int cost;  // loads of an element that take as long
  std::string_view meaning;
};

/// Facts of one operation; total over the enum.
const ScalarOpInfo& scalar_op_info(ScalarOp op);
/// floor, ceil, round, trunc: of an integer the integer itself.
bool rounds(ScalarOp op);
/// The operation of that spelling, if there is one.
std::optional<ScalarOp> find_scalar_op(std::string_view name);
inline constexpr int kNumScalarOps = 0
#define SCALAR_OP(name, arity, operands, result, cost, meaning) +1
#include "runtime/core/numbers/scalar_op.def"
    ;

}  // namespace cinch
