#include <algorithm>
#include <utility>

#include "compiler/lower/parts/access.h"
#include "compiler/lower/parts/expressions.h"
#include "runtime/core/check.h"

namespace cinch::lower {
Lowered ExpressionLowering::lower_table(const Expr& e) {
  const bool is_constant = std::all_of(e.args.begin(), e.args.end(), [&](ExprId arg) {
    return expr(arg).kind == ExprKind::Literal && expr(arg).type.dtype == e.type.dtype;
  });
  if (is_constant) {
    ir::Table table{e.type, {}};
    for (ExprId arg : e.args) table.bits.push_back(expr(arg).bits);
    return {emit().const_array(std::move(table))};
  }
  std::vector<Lowered> elements;
  elements.reserve(e.args.size());
  for (ExprId arg : e.args) elements.push_back(value(arg));
  if (differ_in_lanes(elements)) return LaneArrays(cx()).join(e, elements);
  std::vector<ValueId> parts;
  const Type one = vector_type(e.type.dtype, emit().one());
  parts.reserve(e.args.size());
  for (const Lowered& element : elements) parts.push_back(emit().fit(element.id, one));
  return {emit().concat(std::move(parts))};
}

Lowered ExpressionLowering::lower_var(const Expr& e) {
  const Lowered v = cx().vars[e.var.index()];
  CINCH_CHECK(v.id.is_valid(),
              "variable " + cx().checked.vars[e.var.index()].name + " has no value");
  if (cx().in_combiner && v.lanes != 0)
    limitation("a reduction or scan whose lambda looks outside");
  return v;
}

Lowered ExpressionLowering::lower_block(const Expr& e) {
  for (StmtId stmt : e.stmts) StatementLowering(cx()).lower(cx().checked.stmts[stmt.index()]);
  if (e.args.empty() || !e.args[0]) return {};
  return value(e.args[0]);
}

// map, convert, bitcast and call_extern are lowered alike: operands in one shape, then one
// operator.
Lowered ExpressionLowering::lower_elementwise(const Expr& e, OpKind kind) {
  std::vector<Lowered> args;
  std::uint8_t lanes = 0;
  for (ExprId arg : e.args) {
    args.push_back(value(arg));
    lanes = std::max(lanes, args.back().lanes);
  }
  std::vector<ValueId> operands;
  operands.reserve(args.size());
  for (const Lowered& arg : args) {
    operands.push_back(lanes == 0 ? arg.id : aligned(arg, e.type, lanes));
  }
  ir::Attrs attrs{.scalar_op = e.scalar_op};
  if (kind == OpKind::call_extern) attrs.index = e.index;
  const Type type = lanes == 0 ? e.type : with_dtype(emit().meet(operands), e.type.dtype);
  if (kind == OpKind::convert && emit().dtype(operands[0]) == e.type.dtype) {
    return {operands[0], lanes};
  }
  return {emit().emit(kind, std::move(operands), type, attrs), lanes};
}

Lowered ExpressionLowering::lower(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Literal:
      return {emit().constant_bits(e.type.dtype, e.bits)};
    case ExprKind::Table:
      return lower_table(e);
    case ExprKind::HostSize:
      return {host_scalar(e.size, e.type.dtype)};
    case ExprKind::Param:
      return {emit().convert(emit().param(e.index), e.type.dtype)};
    case ExprKind::Var:
      return lower_var(e);
    case ExprKind::State:
      CINCH_CHECK(e.index < cx().states.size(), "a state is read where there are none");
      return {cx().states[e.index]};
    case ExprKind::Gradient:
      CINCH_CHECK(cx().gradient.is_valid(), "the gradient is read where there is none");
      return {cx().gradient};
    case ExprKind::Field:
      return {cx().payloads.at(e.var).at(e.index)};
    case ExprKind::Scalar:
      return lower_elementwise(e, OpKind::map);
    case ExprKind::Convert:
      return lower_elementwise(e, OpKind::convert);
    case ExprKind::Bitcast:
      return lower_elementwise(e, OpKind::bitcast);
    case ExprKind::CallExtern:
      return lower_elementwise(e, OpKind::call_extern);
    case ExprKind::Builtin:
      return BuiltinLowering(cx()).lower(e);
    case ExprKind::Index:
      return AccessLowering(cx()).lower_index(e);
    case ExprKind::Slice:
      return AccessLowering(cx()).lower_slice(e);
    case ExprKind::Block:
      return lower_block(e);
    case ExprKind::If:
      return ControlLowering(cx()).lower_if(e);
    case ExprKind::Lambda:
    case ExprKind::WireLiteral:
      break;
  }
  CINCH_BUG("an expression stands where no value is");
}

void StatementLowering::assign(const Stmt& s) {
  Lowered v = value(s.expr);
  const sema::Var& var = cx().checked.vars[s.var.index()];
  v.id = emit().convert(v.id, var.type.dtype);
  if (v.lanes == 0) v.id = emit().spread(v.id, var.type);
  cx().vars[s.var.index()] = v;
  emit().name(v.id, var.name);
}

// The fields that the inner decode will see, as the wire holds them.
void StatementLowering::lower_let_payload(const Stmt& s) {
  std::vector<ValueId> fields = lower_payload(s.expr);
  const sema::Var& var = cx().checked.vars[s.var.index()];
  CINCH_CHECK(fields.size() == var.field_types.size(), "one value per wire field");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i] = emit().fit(fields[i], var.field_types[i]);
  }
  cx().payloads[s.var] = std::move(fields);
}

void StatementLowering::lower_assert(const Stmt& s) {
  const Lowered condition = value(s.expr2);
  Checks(cx()).condition(condition, located(s.span, s.text));
}

void StatementLowering::lower(const Stmt& s) {
  emit().set_span(s.span);
  const bool is_check = s.kind == StmtKind::Assert || s.kind == StmtKind::CheckHost;
  if (cx().is_prelude && is_check && s.text.empty()) return;
  switch (s.kind) {
    case StmtKind::Let:
    case StmtKind::Assign:
      return assign(s);
    case StmtKind::AssignState:
      cx().states[s.index] = emit().fit(uniform(s.expr), cx().out.info.states[s.index].type);
      emit().name(cx().states[s.index], cx().out.info.states[s.index].name);
      return;
    case StmtKind::AssignIndexed:
      return AccessLowering(cx()).lower_assign_indexed(s);
    case StmtKind::For:
      return ControlLowering(cx()).lower_for(s);
    case StmtKind::While:
      return ControlLowering(cx()).lower_while(s);
    case StmtKind::Expr:
      if (gives_value(s.expr)) {
        value(s.expr);
      } else {
        ExpressionLowering(cx()).lower(expr(s.expr));
      }
      return;
    case StmtKind::Assert:
      return lower_assert(s);
    case StmtKind::LetPayload:
      return lower_let_payload(s);
    case StmtKind::CheckHost:
      return emit().check_host(s.size, located(s.span, s.text));
  }
  CINCH_BUG("a statement of an unknown kind");
}

std::vector<ValueId> StatementLowering::lower_payload(ExprId id) {
  const Expr& e = expr(id);
  emit().set_span(e.span);
  if (e.kind == ExprKind::Var) return cx().payloads.at(e.var);
  if (e.kind == ExprKind::Block) {
    for (StmtId stmt : e.stmts) lower(cx().checked.stmts[stmt.index()]);
    return lower_payload(e.args.at(0));
  }
  CINCH_CHECK(e.kind == ExprKind::WireLiteral, "encode must end in a wire literal");
  std::vector<ValueId> fields;
  fields.reserve(e.args.size());
  for (ExprId arg : e.args) fields.push_back(uniform(arg));
  return fields;
}

}  // namespace cinch::lower
