// The meaning of element-wise operations on single elements, by the language's own functions: for
// the interpreter, and for whatever computes with constants while it compiles. Elements travel as
// 64 bits ("encoded"): signed integers sign-extended, unsigned ones and bool zero-extended, floats
// as their own bits in the low end.
#pragma once

#include <span>

#include "runtime/core/numbers/dtype.h"

namespace cinch {
// The enum of element-wise operations and its facts, generated from scalar_op.def.

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

/// Evaluates `op`. `dtype` is the type of the operands (for select: of the second and third). NaNs
/// of results are canonical, integers wrap to their width.
std::uint64_t evaluate_scalar(ScalarOp op, DType dtype, std::span<const std::uint64_t> operands);
/// Converts as `as` does: see language.md, "Types". To bool: not equal 0.
std::uint64_t convert_element(DType from, DType to, std::uint64_t element);
/// The same bits as another type of the same width; a NaN becomes canonical first.
std::uint64_t bitcast_element(DType from, DType to, std::uint64_t element);

/// Converts a constant (bits of f64 for floats, i64 for integers) to an encoded element, and back.
std::uint64_t element_of_constant(DType dtype, std::uint64_t bits);
std::uint64_t constant_of_element(DType dtype, std::uint64_t element);
/// The identity of `op` as such a constant: 0 for add, 1 for mul, for min and max the far end of
/// the type (floats: infinity), for bit_and all ones.
std::uint64_t identity_constant(ScalarOp op, DType dtype);

/// The low `dtype.bits` bits as an encoded element (sign-extended if signed).
std::uint64_t encode_bits(DType dtype, std::uint64_t raw);
/// The canonical NaN if a float element is a NaN, else the element.
std::uint64_t canonical_element(DType dtype, std::uint64_t element);

float f32_of(std::uint64_t element);
double f64_of(std::uint64_t element);
std::uint64_t element_of_f32(float value);
std::uint64_t element_of_f64(double value);

}  // namespace cinch
