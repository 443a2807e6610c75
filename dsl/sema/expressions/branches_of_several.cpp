// `if` whose branches have several values: one choice for each value.
#include "dsl/sema/expressions/expressions.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

// A value that the statements of a branch compute is assigned to a variable there, and the variable
// is read after the `if`. All other values are chosen one by one.
Value Expressions::join_several(const Value& chosen_by, Branch& a, Branch& b, Span span) {
  if (chosen_by.is_error() || a.value.is_error() || b.value.is_error()) return error_value(span);
  if (const auto decided = decided_condition(chosen_by)) {
    const Branch& taken = *decided ? a : b;
    build_.push_all(taken);
    return taken.value;
  }
  const bool fits = a.value.kind == ValueKind::Tuple && b.value.kind == ValueKind::Tuple &&
                    a.value.elements.size() == b.value.elements.size();
  if (!fits) {
    reporter_.report<DiagKind::BranchesDiffer>(span, text_.describe(a.value),
                                               text_.describe(b.value));
    return error_value(span);
  }
  Value bools = conversions_.one_bool(chosen_by);
  if (bools.is_error()) return bools;
  const bool has_stmts = !a.stmts.empty() || !b.stmts.empty();
  const Value test = chosen_by.is_host() && !has_stmts ? chosen_by : build_.shared(bools, "is_so");
  const auto is_constant = [&](const Value& value) {
    return value.kind == ValueKind::Table || (value.is_host() && pool().is_const(value.host));
  };
  Value results;
  results.kind = ValueKind::Tuple;
  results.span = span;
  for (std::size_t i = 0; i < a.value.elements.size(); ++i) {
    const Value &first = a.value.elements[i], &second = b.value.elements[i];
    const bool is_chosen = !has_stmts || (is_constant(first) && is_constant(second));
    results.elements.push_back(is_chosen ? join_branches(test, first, second, span)
                                         : assigned_in(first, second, a, b, span));
    if (results.elements.back().is_error()) return error_value(span);
  }
  if (!has_stmts) return results;
  Expr made{ExprKind::If, {}, span};
  made.args = {test.expr};
  for (Branch* branch : {&a, &b}) {
    Expr block{ExprKind::Block, {}, span};
    block.stmts = std::move(branch->stmts);
    made.args.push_back(build_.typed(std::move(block)).expr);
  }
  Stmt choice{StmtKind::Expr, span};
  choice.expr = build_.typed(std::move(made)).expr;
  build_.push(std::move(choice));
  return results;
}

// A variable to which each branch assigns its value at its end, and a read of it.
Value Expressions::assigned_in(const Value& first, const Value& second, Branch& a, Branch& b,
                               Span span) {
  const bool is_exact = is_exact_choice(first, second);
  const auto dtype = type_of_choice(first, second);
  Value made[] = {first, second};
  Branch* const branches[] = {&a, &b};
  for (int i = 0; i < 2 && dtype; ++i) {
    build_.into_branch(*branches[i], [&] {
      made[i] = conversions_.coerce(all_.exact.as_low_bits(made[i], *dtype), *dtype);
    });
    if (made[i].is_error()) return error_value(span);
  }
  if (!are_of_one_shape(made[0], made[1], dtype.has_value(), span) || !dtype) {
    return error_value(span);
  }
  const Type& type = made[0].type;
  const HostExprId nothing = is_bool(*dtype) ? pool().const_bool(false) : pool().const_int(0);
  Value before = conversions_.coerce(host_value(nothing, span), *dtype);
  if (type.rank > 0) before = build_.builtin(BuiltinId::fill, type, {before.expr}, span);
  const VarId var = build_.add_var("chosen", type, true, span);
  Stmt let{StmtKind::Let, span};
  let.var = var;
  let.expr = before.expr;
  build_.push(std::move(let));
  for (int i = 0; i < 2; ++i) {
    Stmt store{StmtKind::Assign, span};
    store.var = var;
    store.expr = made[i].expr;
    build_.into_branch(*branches[i], [&] { build_.push(std::move(store)); });
  }
  all_.numbering.note_assignment(var);
  Value result = build_.read_var(var, span);
  result.facts = all_.facts.common_facts(made[0].facts, made[1].facts);
  result.is_exact = is_exact;
  return result;
}

}  // namespace cinch::sema
