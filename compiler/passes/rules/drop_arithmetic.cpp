// Element-wise operations that change nothing, or that a cheaper one computes with the same bits.
//
//   before:  %2 = map.mul %1, 1           after:  uses of %2 become %1
#include <cmath>

#include "compiler/passes/rules/rules.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::passes {
namespace {

using Found = std::optional<ir::ValueId>;

bool is_float_result(const Matcher& m) {
  return is_float(m.result_type().dtype);
}

// x + 0 (floats: x + -0, since -0 + 0 is 0), x * 1, x | 0, x ^ 0 on either side.
Found drop_neutral_operand(const Matcher& m) {
  if (m.op().kind != ir::OpKind::map || m.op().operands.size() != 2) return std::nullopt;
  double neutral = 0;
  switch (m.op().attrs.scalar_op) {
    case ScalarOp::add:
      neutral = is_float_result(m) ? -0.0 : 0.0;
      break;
    case ScalarOp::mul:
      neutral = 1;
      break;
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
      break;
    default:
      return std::nullopt;
  }
  if (m.is_number(m.operand(1), neutral)) return m.as_result(m.operand(0));
  if (m.is_number(m.operand(0), neutral)) return m.as_result(m.operand(1));
  return std::nullopt;
}

// x - 0, x / 1, x << 0, x >> 0.
Found drop_neutral_right(const Matcher& m) {
  const bool by_zero =
      m.is_map(ScalarOp::sub) || m.is_map(ScalarOp::shl) || m.is_map(ScalarOp::shr);
  const bool by_one = m.is_map(ScalarOp::div) || m.is_map(ScalarOp::divide_or_zero);
  if (!by_zero && !by_one) return std::nullopt;
  if (!m.is_number(m.operand(1), by_zero ? 0 : 1)) return std::nullopt;
  return m.as_result(m.operand(0));
}

// Integers and bool only: x * 0, x & 0.
Found drop_absorbing_operand(const Matcher& m) {
  if (!m.is_map(ScalarOp::mul) && !m.is_map(ScalarOp::bit_and)) return std::nullopt;
  if (is_float_result(m)) return std::nullopt;
  for (ir::ValueId operand : m.op().operands) {
    if (m.is_number(operand, 0)) return m.constant_result(0);
  }
  return std::nullopt;
}

// x & true for bool.
Found drop_true(const Matcher& m) {
  if (!m.is_map(ScalarOp::bit_and) || !is_bool(m.result_type().dtype)) return std::nullopt;
  if (m.is_number(m.operand(1), 1)) return m.as_result(m.operand(0));
  if (m.is_number(m.operand(0), 1)) return m.as_result(m.operand(1));
  return std::nullopt;
}

// min, max, & and | of a value with itself.
Found drop_idempotent(const Matcher& m) {
  const bool is_known = m.is_map(ScalarOp::min) || m.is_map(ScalarOp::max) ||
                        m.is_map(ScalarOp::bit_and) || m.is_map(ScalarOp::bit_or);
  if (!is_known || m.operand(0) != m.operand(1)) return std::nullopt;
  return m.operand(0);
}

// -(-x), !(!x); abs(abs(x)), abs(-x).
Found drop_double_negation(const Matcher& m) {
  for (ScalarOp op : {ScalarOp::neg, ScalarOp::bit_not}) {
    const ir::Op* inner = m.is_map(op) ? m.defined_by_map(m.operand(0), op) : nullptr;
    if (inner) return inner->operands[0];
  }
  return std::nullopt;
}

Found drop_inside_abs(const Matcher& m) {
  if (!m.is_map(ScalarOp::abs)) return std::nullopt;
  if (is_float_result(m) && m.defined_by_map(m.operand(0), ScalarOp::abs)) return m.operand(0);
  const ir::Op* negation = m.defined_by_map(m.operand(0), ScalarOp::neg);
  if (!negation || !is_float_result(m)) return std::nullopt;
  return m.builder().map(ScalarOp::abs, ir::ValueId(negation->operands[0]));
}

// select of a constant, or of one value twice.
Found drop_select(const Matcher& m) {
  if (!m.is_map(ScalarOp::select)) return std::nullopt;
  if (m.operand(1) == m.operand(2)) return m.as_result(m.operand(1));
  const auto condition = m.constant(m.operand(0));
  if (!condition) return std::nullopt;
  return m.as_result(m.operand(*condition ? 1 : 2));
}

// x / 2^k is x * 2^-k: both round the same quotient once.
Found multiply_by_reciprocal(const Matcher& m) {
  if (!m.is_map(ScalarOp::div) || m.result_type().dtype != kF32) return std::nullopt;
  const auto divisor = m.constant(m.operand(1));
  if (!divisor) return std::nullopt;
  int exponent = 0;
  const double value = f32_of(*divisor);
  const double fraction = std::frexp(std::fabs(value), &exponent);
  if (fraction != 0.5 || exponent < -100 || exponent > 100) return std::nullopt;
  const ir::ValueId x = m.operand(0);
  const ir::ValueId reciprocal = m.builder().constant(kF32, 1 / value);
  return m.as_result(m.builder().map(ScalarOp::mul, x, reciprocal));
}

// Through a type that contains every value of the first: (x as B) as C is x as C.
Found drop_lossless_convert(const Matcher& m) {
  if (m.op().kind != ir::OpKind::convert) return std::nullopt;
  const ir::Op* inner = m.defined_by(m.operand(0), ir::OpKind::convert);
  if (!inner) return std::nullopt;
  const ir::ValueId source = inner->operands[0];
  const DType from = m.type(source).dtype, between = m.type(m.operand(0)).dtype;
  if (!widens_losslessly(from, between)) return std::nullopt;
  return m.builder().convert(source, m.result_type().dtype);
}

constexpr Rule kDropArithmetic[] = {
    drop_neutral_operand,   drop_neutral_right,    drop_absorbing_operand, drop_true,
    drop_idempotent,        drop_double_negation,  drop_inside_abs,        drop_select,
    multiply_by_reciprocal, drop_lossless_convert,
};

}  // namespace

std::span<const Rule> arithmetic_rules() {
  return kDropArithmetic;
}

}  // namespace cinch::passes
