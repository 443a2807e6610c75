#include <algorithm>
#include <utility>

#include "compiler/lower/parts/body_lowering.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"

namespace cinch::lower {
Lowered BodyLowering::lower_table(const Expr& e) {
  const bool is_constant = std::all_of(e.args.begin(), e.args.end(), [&](ExprId arg) {
    return expr(arg).kind == ExprKind::Literal && expr(arg).type.dtype == e.type.dtype;
  });
  if (is_constant) {
    ir::Table table{e.type, {}};
    for (ExprId arg : e.args) table.bits.push_back(expr(arg).bits);
    return {emit_.const_array(std::move(table))};
  }
  auto elements = mapped<Lowered>(e.args, [&](ExprId arg) { return value(arg); });
  if (differ_in_lanes(elements)) return join_lanes(e, elements);
  std::vector<ValueId> parts;
  const Type one = vector_type(e.type.dtype, emit_.one());
  parts.reserve(e.args.size());
  for (const Lowered& element : elements) parts.push_back(emit_.fit(element.id, one));
  return {emit_.concat(std::move(parts))};
}

Lowered BodyLowering::lower_var(const Expr& e) {
  const Lowered v = vars_[e.var.index()];
  CINCH_CHECK(v.id.is_valid(), "variable " + checked_.vars[e.var.index()].name + " has no value");
  if (in_combiner_ && v.lanes != 0) limitation("a reduction or scan whose lambda looks outside");
  return v;
}

Lowered BodyLowering::lower_block(const Expr& e) {
  for (StmtId stmt : e.stmts) lower(checked_.stmts[stmt.index()]);
  if (e.args.empty() || !e.args[0]) return {};
  return value(e.args[0]);
}

// map, convert, bitcast and call_extern are lowered alike: operands in one shape, then one
// operator.
Lowered BodyLowering::lower_elementwise(const Expr& e, OpKind kind) {
  std::vector<Lowered> args;
  std::uint8_t lanes = 0;
  for (ExprId arg : e.args) {
    args.push_back(value(arg));
    lanes = std::max(lanes, args.back().lanes);
  }
  auto operands = mapped<ValueId>(
      args, [&](const Lowered& arg) { return lanes == 0 ? arg.id : aligned(arg, e.type, lanes); });
  ir::Attrs attrs{.scalar_op = e.scalar_op};
  if (kind == OpKind::call_extern) attrs.index = e.index;
  const Type type = lanes == 0 ? e.type : with_dtype(emit_.meet(operands), e.type.dtype);
  if (kind == OpKind::convert && emit_.dtype(operands[0]) == e.type.dtype) {
    return {operands[0], lanes};
  }
  return {emit_.emit(kind, std::move(operands), type, attrs), lanes};
}

Lowered BodyLowering::lower(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Literal:
      return {emit_.constant_bits(e.type.dtype, e.bits)};
    case ExprKind::Table:
      return lower_table(e);
    case ExprKind::HostSize:
      return {host_scalar(e.size, e.type.dtype)};
    case ExprKind::Param:
      return {emit_.convert(emit_.param(e.index), e.type.dtype)};
    case ExprKind::Var:
      return lower_var(e);
    case ExprKind::State:
      CINCH_CHECK(e.index < states_.size(), "a state is read where there are none");
      return {states_[e.index]};
    case ExprKind::Gradient:
      CINCH_CHECK(gradient_.is_valid(), "the gradient is read where there is none");
      return {gradient_};
    case ExprKind::Field:
      return {payloads_.at(e.var).at(e.index)};
    case ExprKind::Scalar:
      return lower_elementwise(e, OpKind::map);
    case ExprKind::Convert:
      return lower_elementwise(e, OpKind::convert);
    case ExprKind::Bitcast:
      return lower_elementwise(e, OpKind::bitcast);
    case ExprKind::CallExtern:
      return lower_elementwise(e, OpKind::call_extern);
    case ExprKind::Builtin:
      return lower_builtin(e);
    case ExprKind::Index:
      return lower_index(e);
    case ExprKind::Slice:
      return lower_slice(e);
    case ExprKind::Block:
      return lower_block(e);
    case ExprKind::If:
      return lower_if(e);
    case ExprKind::Lambda:
    case ExprKind::WireLiteral:
      break;
  }
  CINCH_BUG("an expression stands where no value is");
}

void BodyLowering::assign(const Stmt& s) {
  Lowered v = value(s.expr);
  const sema::Var& var = checked_.vars[s.var.index()];
  v.id = emit_.convert(v.id, var.type.dtype);
  if (v.lanes == 0) v.id = emit_.spread(v.id, var.type);
  vars_[s.var.index()] = v;
  emit_.name(v.id, var.name);
}

// The fields that the inner decode will see, as the wire holds them.
void BodyLowering::lower_let_payload(const Stmt& s) {
  std::vector<ValueId> fields = lower_payload(s.expr);
  const sema::Var& var = checked_.vars[s.var.index()];
  CINCH_CHECK(fields.size() == var.field_types.size(), "one value per wire field");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i] = emit_.fit(fields[i], var.field_types[i]);
  }
  payloads_[s.var] = std::move(fields);
}

void BodyLowering::lower_assert(const Stmt& s) {
  const Lowered condition = value(s.expr2);
  check_condition(condition, located(s.span, s.text));
}

void BodyLowering::lower(const Stmt& s) {
  emit_.set_span(s.span);
  const bool is_check = s.kind == StmtKind::Assert || s.kind == StmtKind::CheckHost;
  if (is_prelude_ && is_check && s.text.empty()) return;
  switch (s.kind) {
    case StmtKind::Let:
    case StmtKind::Assign:
      return assign(s);
    case StmtKind::AssignState:
      states_[s.index] = emit_.fit(uniform(s.expr), out_.info.states[s.index].type);
      emit_.name(states_[s.index], out_.info.states[s.index].name);
      return;
    case StmtKind::AssignIndexed:
      return lower_assign_indexed(s);
    case StmtKind::For:
      return lower_for(s);
    case StmtKind::While:
      return lower_while(s);
    case StmtKind::Expr:
      if (gives_value(s.expr)) {
        value(s.expr);
      } else {
        lower(expr(s.expr));
      }
      return;
    case StmtKind::Assert:
      return lower_assert(s);
    case StmtKind::LetPayload:
      return lower_let_payload(s);
    case StmtKind::CheckHost:
      return emit_.check_host(s.size, located(s.span, s.text));
  }
  CINCH_BUG("a statement of an unknown kind");
}

std::vector<ValueId> BodyLowering::lower_payload(ExprId id) {
  const Expr& e = expr(id);
  emit_.set_span(e.span);
  if (e.kind == ExprKind::Var) return payloads_.at(e.var);
  if (e.kind == ExprKind::Block) {
    for (StmtId stmt : e.stmts) lower(checked_.stmts[stmt.index()]);
    return lower_payload(e.args.at(0));
  }
  CINCH_CHECK(e.kind == ExprKind::WireLiteral, "encode must end in a wire literal");
  return mapped<ValueId>(e.args, [&](ExprId arg) { return uniform(arg); });
}

}  // namespace cinch::lower
