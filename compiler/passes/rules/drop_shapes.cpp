// Ops that move elements but have no effect together.
//
//   before:  %1 = transpose %0            after:  uses of %2 become %0
//            %2 = transpose %1
#include "compiler/passes/rules/rules.h"

namespace cinch::passes {
namespace {

using Found = std::optional<ir::ValueId>;
using ir::OpKind;

Found drop_double_transpose(const Matcher& m) {
  if (m.op().kind != OpKind::transpose) return std::nullopt;
  const ir::Op* inner = m.defined_by(m.operand(0), OpKind::transpose);
  return inner ? Found(inner->operands[0]) : std::nullopt;
}

Found join_reshapes(const Matcher& m) {
  if (m.op().kind != OpKind::reshape) return std::nullopt;
  const ir::Op* inner = m.defined_by(m.operand(0), OpKind::reshape);
  if (!inner) return std::nullopt;
  const bool is_proved = m.op().attrs.proved || inner->attrs.proved;
  const ir::ValueId source = inner->operands[0];
  return m.builder().reshape(source, m.result_type(), is_proved);
}

Found drop_reshape_to_same(const Matcher& m) {
  if (m.op().kind != OpKind::reshape) return std::nullopt;
  const rt::ProgramInfo& info = m.builder().program().info;
  if (!ir::types_agree(info, m.type(m.operand(0)), m.result_type())) return std::nullopt;
  return m.operand(0);
}

// iota[index] is the index.
Found drop_gather_of_iota(const Matcher& m) {
  if (m.op().kind != OpKind::gather || !m.defined_by(m.operand(0), OpKind::iota)) {
    return std::nullopt;
  }
  return m.builder().convert(m.operand(1), kU32);
}

// A fill, gathered, sliced or reshaped, is a fill.
Found move_fill_out(const Matcher& m) {
  const OpKind kind = m.op().kind;
  const bool is_known = kind == OpKind::gather || kind == OpKind::slice ||
                        kind == OpKind::reshape || kind == OpKind::transpose ||
                        kind == OpKind::fill || kind == OpKind::unchunk;
  if (!is_known) return std::nullopt;
  const ir::Op* fill = m.defined_by(m.operand(0), OpKind::fill);
  if (!fill) return std::nullopt;
  const ir::ValueId scalar = fill->operands[0];
  if (!ir::is_scalar(m.type(scalar))) return std::nullopt;
  return m.as_result(scalar);
}

// A fill among the operands of a map whose shape another operand determines is replaced by its
// scalar.
Found drop_fill_in_map(const Matcher& m) {
  if (m.op().kind != OpKind::map) return std::nullopt;
  const rt::ProgramInfo& info = m.builder().program().info;
  ir::ValueIds operands = m.op().operands;
  bool is_changed = false, has_shape = false;
  for (ir::ValueId& operand : operands) {
    const ir::Op* fill = m.defined_by(operand, OpKind::fill);
    if (fill && ir::is_scalar(m.type(fill->operands[0]))) {
      operand = fill->operands[0];
      is_changed = true;
    } else {
      has_shape |= ir::shapes_agree(info, m.type(operand), m.result_type());
    }
  }
  if (!is_changed || !has_shape) return std::nullopt;
  return m.builder().map(m.op().attrs.scalar_op, operands);
}

// An element-wise operation on fills only is a fill.
Found move_fill_behind_map(const Matcher& m) {
  if (m.op().kind != OpKind::map && m.op().kind != OpKind::convert) return std::nullopt;
  if (ir::is_scalar(m.result_type())) return std::nullopt;
  ir::ValueIds scalars;
  for (ir::ValueId operand : m.op().operands) {
    if (const ir::Op* fill = m.defined_by(operand, OpKind::fill)) operand = fill->operands[0];
    if (!ir::is_scalar(m.type(operand))) return std::nullopt;
    scalars.push_back(operand);
  }
  const ir::ValueId scalar = m.op().kind == OpKind::map
                                 ? m.builder().map(m.op().attrs.scalar_op, scalars)
                                 : m.builder().convert(scalars[0], m.result_type().dtype);
  return m.as_result(scalar);
}

constexpr Rule kDropShapes[] = {drop_double_transpose, join_reshapes, drop_reshape_to_same,
                                drop_gather_of_iota,   move_fill_out, drop_fill_in_map,
                                move_fill_behind_map};

}  // namespace

std::span<const Rule> shape_rules() {
  return kDropShapes;
}

}  // namespace cinch::passes
