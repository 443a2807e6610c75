// Element-wise operations on constants, by the language's own functions.
//
//   before:  %1: f32 = map.sqrt %0        after:  %1: f32 = const_scalar {value=2}
//            (%0 is 4)
#include <bit>
#include <vector>

#include "compiler/ir/rewriter.h"
#include "compiler/passes/rules/rules.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/params.h"

namespace cinch::passes {
namespace {

std::optional<ir::ValueId> fold_map(const Matcher& m) {
  if (m.op().kind != ir::OpKind::map) return std::nullopt;
  std::vector<std::uint64_t> elements;
  for (ir::ValueId operand : m.op().operands) {
    const auto element = m.constant(operand);
    if (!element) return std::nullopt;
    elements.push_back(*element);
  }
  const DType dtype = m.type(m.op().operands.back()).dtype;
  return m.constant_result(evaluate_scalar(m.op().attrs.scalar_op, dtype, elements));
}

std::optional<ir::ValueId> fold_convert(const Matcher& m) {
  if (m.op().kind != ir::OpKind::convert && m.op().kind != ir::OpKind::bitcast) return std::nullopt;
  const auto element = m.constant(m.operand(0));
  if (!element) return std::nullopt;
  const DType from = m.type(m.operand(0)).dtype, to = m.result_type().dtype;
  return m.constant_result(m.op().kind == ir::OpKind::convert
                               ? convert_element(from, to, *element)
                               : bitcast_element(from, to, *element));
}

std::optional<ir::ValueId> fold_host_size(const Matcher& m) {
  const HostExprPool& exprs = m.builder().exprs();
  if (m.op().kind != ir::OpKind::host_size || !exprs.is_const(m.op().attrs.size)) {
    return std::nullopt;
  }
  const HostValue value = exprs.const_value(m.op().attrs.size);
  return m.constant_result(
      convert_element(dtype_of(value.type), m.result_type().dtype, value.bits));
}

constexpr Rule kFoldConstants[] = {fold_map, fold_convert, fold_host_size};

}  // namespace

std::span<const Rule> constant_rules() {
  return kFoldConstants;
}

// Questions of rules about operands.

const ir::Op* Matcher::defined_by(ir::ValueId value, ir::OpKind kind) const {
  const ir::Op& op = ir::defining_op(b_.function(), value);
  return op.kind == kind ? &op : nullptr;
}

const ir::Op* Matcher::defined_by_map(ir::ValueId value, ScalarOp op) const {
  const ir::Op* found = defined_by(value, ir::OpKind::map);
  return found && found->attrs.scalar_op == op ? found : nullptr;
}

std::optional<std::uint64_t> Matcher::constant(ir::ValueId value) const {
  if (const ir::Op* fill = defined_by(value, ir::OpKind::fill)) value = fill->operands[0];
  const ir::Op* op = defined_by(value, ir::OpKind::const_scalar);
  if (!op) return std::nullopt;
  return element_of_constant(type(value).dtype, op->attrs.bits);
}

bool Matcher::is_number(ir::ValueId value, double number) const {
  const std::optional<std::uint64_t> element = constant(value);
  const DType dtype = type(value).dtype;
  if (!element) return false;
  return convert_element(dtype, kF64, *element) == std::bit_cast<std::uint64_t>(number);
}

ir::ValueId Matcher::as_result(ir::ValueId value) const {
  return b_.fill(value, result_type());
}

ir::ValueId Matcher::constant_result(std::uint64_t element) const {
  const ir::Type shape = result_type();
  const ir::ValueId scalar =
      b_.constant_bits(shape.dtype, constant_of_element(shape.dtype, element));
  return b_.fill(scalar, shape);
}

}  // namespace cinch::passes
