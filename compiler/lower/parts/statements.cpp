// Bodies of Statements (expressions.h).
#include <utility>

#include "compiler/lower/parts/access.h"
#include "compiler/lower/parts/expressions.h"
#include "runtime/core/check.h"

namespace cinch::lower {

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
