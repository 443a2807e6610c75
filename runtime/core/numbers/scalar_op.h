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

/// Types that an operation takes: anything, integers and floats, floats, integers, integers and
/// bool.
enum class ScalarOperands : std::uint8_t { Any, Number, Real, Int, Bits };
/// The result type of an operation: its operands' type, bool, or u32 (counts of bits).
enum class ScalarResult : std::uint8_t { Same, Bool, U32 };

struct ScalarOpInfo {
  std::string_view name;
  int arity;
  ScalarOperands operands;
  ScalarResult result;
  int cost;  // as the number of element loads that take equally long
  std::string_view meaning;
};

/// Facts about one operation, for all values of the enum.
const ScalarOpInfo& scalar_op_info(ScalarOp op);
/// Is it floor, ceil, round or trunc? These return an integer unchanged.
bool rounds(ScalarOp op);
/// The operation with that spelling, if there is one.
std::optional<ScalarOp> find_scalar_op(std::string_view name);
inline constexpr int kNumScalarOps = 0
#define SCALAR_OP(name, arity, operands, result, cost, meaning) +1
#include "runtime/core/numbers/scalar_op.def"
    ;

}  // namespace cinch
