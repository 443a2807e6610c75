// Questions of rules about operands.
#include <bit>

#include "compiler/ir/rewriter.h"
#include "compiler/passes/rules/rules.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::passes {

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
