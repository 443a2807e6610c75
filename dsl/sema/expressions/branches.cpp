// `if`: computed on the host, decided at compile time, or chosen on the device.

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/expressions/expressions.h"

namespace cinch::sema {
using dsl::DiagKind;

Value Expressions::if_expr(const ast::If& node, Span span) {
  const Value chosen_by = expr(node.condition);
  const auto branch = [&](const std::function<Value()>& body) {
    Branch made = build_.in_branch(span, body);
    all_.numbering.forget_masks();
    return made;
  };
  const auto facts_before = all_.facts.of_variables();
  Branch a = branch([&] { return block(node.then); });
  const auto facts_of_then = all_.facts.exchange(facts_before);
  Branch b = branch([&] {
    if (!node.otherwise.has_value()) {
      return Value{.span = span, .kind = ValueKind::Unit};
    }
    const ast::Expr& other = tree()[node.otherwise];
    if (const auto* braces = std::get_if<ast::BlockExpr>(&other.node)) return block(braces->block);
    return expr(node.otherwise);
  });
  all_.facts.join_variable_facts(facts_of_then);
  const auto is_several = [](const Branch& made) {
    return made.value.kind == ValueKind::Tuple || !made.stmts.empty();
  };
  if (is_several(a) || is_several(b)) return join_several(chosen_by, a, b, span);
  return join_branches(chosen_by, std::move(a.value), std::move(b.value), span);
}

// The value of a condition that is known at compile time.
std::optional<bool> Expressions::decided_condition(const Value& chosen_by) {
  const bool is_decided = chosen_by.is_host() && pool().is_const(chosen_by.host) &&
                          pool().type(chosen_by.host) == HostType::Bool;
  if (!is_decided) return std::nullopt;
  return pool().const_value(chosen_by.host).as_bool();
}

Value Expressions::join_branches(const Value& chosen_by, Value a, Value b, Span span) {
  if (chosen_by.is_error() || a.is_error() || b.is_error()) return error_value(span);
  const bool is_on_host =
      chosen_by.is_host() && a.is_host() && b.is_host() && !a.is_big && !b.is_big;
  if (is_on_host && pool().type(chosen_by.host) == HostType::Bool) {
    const std::vector<Value> args =
        all_.numbers.with_quotients(ScalarOp::select, {chosen_by, a, b});
    Value value = FOUND(all_.numbers.host_scalar_op(ScalarOp::select, args, span));
    value.quotient = all_.numbers.quotient_of(ScalarOp::select, args, value, span);
    value.remake = all_.numbers.host_remake(ScalarOp::select, args, value, span);
    return value;
  }
  if (const auto decided = decided_condition(chosen_by)) return *decided ? a : b;
  const Value test = FOUND(conversions_.one_bool(chosen_by));
  const bool is_unit = a.kind == ValueKind::Unit || b.kind == ValueKind::Unit;
  if (!is_unit) {
    if (holds_as_equal(chosen_by, HostOp::Eq, a, b)) a = cut_to(a, b.type.dims[0], span);
    if (holds_as_equal(chosen_by, HostOp::Ne, b, a)) b = cut_to(b, a.type.dims[0], span);
    if (differ_in_counts(a, b)) return join_counted(test, a, b, span);
    return choose(test, std::move(a), std::move(b), span);
  }
  Expr made{ExprKind::If, {}, span};
  made.args = {test.expr, a.expr, b.expr};
  // The branch without statements becomes a block if the other one has statements.
  if (!a.expr) made.args[1] = build_.typed(Expr{ExprKind::Block, {}, span}).expr;
  Value value = build_.typed(std::move(made));
  value.kind = ValueKind::Unit;
  return value;
}

// Does the condition, `count == size` or the other way round, say that a counted vector is as long
// as the vector of the other branch? It has room for as many.
bool Expressions::holds_as_equal(const Value& chosen_by, HostOp op, const Value& counted,
                                 const Value& other) {
  const bool are_vectors = counted.is_typed() && counted.type.rank == 1 && other.is_typed() &&
                           other.type.rank == 1 && chosen_by.is_host();
  if (!are_vectors || pool().node(chosen_by.host).op != op) return false;
  const HostExprId count = counted.type.dims[0], size = other.type.dims[0];
  const HostExprId bound = sizes_.without_counts(count);
  if (!pool().has_count(count) || pool().has_count(size) || !bound) return false;
  const HostExprNode& sides = pool().node(chosen_by.host);
  const auto are = [&](HostExprId a, HostExprId b) {
    return prover_.proves_equal(a, count) && prover_.proves_equal(b, size);
  };
  const bool is_so = are(sides.args[0], sides.args[1]) || are(sides.args[1], sides.args[0]);
  return is_so && prover_.proves_less_equal(size, bound);
}

Value Expressions::cut_to(const Value& counted, HostExprId size, Span span) {
  Expr made{.kind = ExprKind::Slice,
            .type = counted.type,
            .span = span,
            .size = pool().const_int(0),
            .size2 = size};
  made.type.dims[0] = size;
  made.args = {counted.expr};
  made.proved_in_bounds = true;
  Value result = build_.typed(std::move(made));
  result.facts = counted.facts;
  return result;
}

// Are these vectors of different lengths, of which the device finds at least one?
bool Expressions::differ_in_counts(const Value& a, const Value& b) {
  const auto has_length = [](const Value& value) {
    return value.is_typed() || value.kind == ValueKind::Table;
  };
  if (!has_length(a) || !has_length(b) || mode_.lambda_depth > 0) return false;
  const Type one = types_.value_type(a), other = types_.value_type(b);
  if (one.rank != 1 || other.rank != 1) return false;
  const HostExprId first = one.dims[0], second = other.dims[0];
  return (pool().has_count(first) || pool().has_count(second)) &&
         !prover_.proves_equal(first, second) && sizes_.without_counts(first) &&
         sizes_.without_counts(second) && type_of_choice(a, b);
}

// Each branch assigns its elements to the beginning of a vector with room for the most, and their
// number; those are then filtered, so that the result has a count of its own.
Value Expressions::join_counted(const Value& test, const Value& a, const Value& b, Span span) {
  const DType dtype = FOUND(type_of_choice(a, b));
  const HostExprId first = sizes_.without_counts(types_.value_type(a).dims[0]);
  const HostExprId second = sizes_.without_counts(types_.value_type(b).dims[0]);
  const HostExprId most = prover_.proves_less_equal(first, second)   ? second
                          : prover_.proves_less_equal(second, first) ? first
                                                                     : pool().max(first, second);
  const HostExprId none = is_bool(dtype) ? pool().const_bool(false) : pool().const_int(0);
  const Value zero = conversions_.coerce(host_value(none, span), dtype);
  const auto zeros = [&](HostExprId size) {
    return build_.builtin(BuiltinId::fill, vector_type(dtype, size), {zero.expr}, span);
  };
  const auto variable = [&](const char* name, const Type& type, const Value& begin) {
    const VarId var = build_.add_var(name, type, true, span);
    build_.push(Stmt{.kind = StmtKind::Let, .span = span, .var = var, .expr = begin.expr});
    return var;
  };
  const Value number = build_.builtin(BuiltinId::iota, vector_type(kU32, most), {}, span,
                                      [&](Expr& e) { e.size = most; });
  const VarId chosen = variable("chosen", vector_type(dtype, most), zeros(most));
  const Value nothing = conversions_.coerce(host_value(pool().const_int(0), span), kU32);
  const VarId length = variable("length", scalar_type(kU32), nothing);
  Expr made{ExprKind::If, {}, span};
  made.args = {test.expr};
  for (const Value* value : {&a, &b}) {
    Branch branch;
    build_.into_branch(branch, [&] {
      const Value part = build_.shared(conversions_.coerce(*value, dtype), "part");
      const HostExprId size = part.type.dims[0], longer = pool().add(size, pool().const_int(1));
      const Value all = build_.builtin(BuiltinId::concat, vector_type(dtype, longer),
                                       {part.expr, zeros(pool().const_int(1)).expr}, span);
      const Value num = conversions_.coerce(host_value(size, span), kU32);
      Value at = all_.operators.scalar_op(ScalarOp::min, {number, num}, span, "if");
      at.facts = {.limit = longer};
      const Value room = gather(all, at, span);
      for (const auto& [var, now] : {std::pair(chosen, room), std::pair(length, num)}) {
        build_.push(Stmt{.kind = StmtKind::Assign, .span = span, .var = var, .expr = now.expr});
      }
    });
    Expr block{ExprKind::Block, {}, span};
    block.stmts = std::move(branch.stmts);
    made.args.push_back(build_.typed(std::move(block)).expr);
  }
  build_.push(
      Stmt{.kind = StmtKind::Expr, .span = span, .expr = build_.typed(std::move(made)).expr});
  all_.numbering.note_assignment(chosen);
  all_.numbering.note_assignment(length);
  const Value kept =
      all_.operators.scalar_op(ScalarOp::lt, {number, build_.read_var(length, span)}, span, "if");
  const CallArgs filter{.name = "if", .id = BuiltinId::filter, .span = span};
  Value result = FOUND(all_.operators.filtered(filter, build_.read_var(chosen, span), kept, {}));
  result.facts = all_.facts.common_facts(a.facts, b.facts);
  return result;
}

// The type of a value that is one of two. Nothing if no type holds both.
std::optional<DType> Expressions::type_of_choice(const Value& a, const Value& b) {
  auto dtype = types_.own_dtype(a);
  const auto other = types_.own_dtype(b);
  if (!dtype || (other && widens_losslessly(*dtype, *other))) dtype = other;
  if (!dtype)
    dtype = types_.is_small_number(a) && types_.is_small_number(b) ? kI32 : types_.meet(a, b);
  const auto is_one = [](const Value& value) {
    return value.is_host() || value.is_typed() || value.kind == ValueKind::Table;
  };
  const bool fits = is_one(a) && is_one(b) && dtype && types_.can_coerce(a, *dtype) &&
                    types_.can_coerce(b, *dtype);
  return fits ? dtype : std::nullopt;
}

bool Expressions::is_exact_choice(const Value& a, const Value& b) {
  return !types_.own_dtype(a) && !types_.own_dtype(b) && !types_.is_real(a) && !types_.is_real(b) &&
         !holds_big(a) && !holds_big(b);
}

// Reports branches whose values have no common type or shape.
bool Expressions::are_of_one_shape(const Value& a, const Value& b, bool have_type, Span span) {
  if (have_type && sizes_.same_shape(a.type, b.type)) return true;
  auto& diag =
      reporter_.report<DiagKind::BranchesDiffer>(span, text_.describe(a), text_.describe(b));
  text_.note_sizes(diag, {&a, &b});
  return false;
}

// The value of one of two branches, chosen on the device.
Value Expressions::choose(const Value& test, Value a, Value b, Span span) {
  const std::vector<Value> met = all_.numbers.with_adaptables(ScalarOp::select, {test, a, b});
  a = met[1];
  b = met[2];
  const bool is_exact = is_exact_choice(a, b);
  const bool is_anew = has_quotient(a) || has_quotient(b) || a.remake != nullptr ||
                       b.remake != nullptr || types_.may_be_negative(a) ||
                       types_.may_be_negative(b);
  const bool is_adaptable = types_.stays_adaptable(ScalarOp::select, std::vector{test, a, b});
  const Value branches[] = {a, b};
  const auto dtype = type_of_choice(a, b);
  if (dtype) {
    a = conversions_.coerce(all_.numbers.as_low_bits(a, *dtype), *dtype);
    b = conversions_.coerce(all_.numbers.as_low_bits(b, *dtype), *dtype);
  }
  if (a.is_error() || b.is_error()) return error_value(span);
  if (!are_of_one_shape(a, b, dtype.has_value(), span)) return error_value(span);
  Value value = build_.typed(Expr{
      .kind = ExprKind::If, .type = a.type, .span = span, .args = {test.expr, a.expr, b.expr}});
  value.facts = all_.facts.common_facts(a.facts, b.facts);
  value.is_exact = is_exact;
  if (is_exact) value.chosen = types_.constants_of(branches);
  if (is_anew && (is_exact || is_adaptable)) {
    value.remake = all_.numbers.branch_remake(test, branches, value, span);
  }
  return value;
}

// `if` whose branches have several values: one choice for each value.

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
  if (!fits)
    return mistake<DiagKind::BranchesDiffer>(span, text_.describe(a.value),
                                             text_.describe(b.value));
  Value bools = FOUND(conversions_.one_bool(chosen_by));
  const bool has_stmts = !a.stmts.empty() || !b.stmts.empty();
  const Value test = chosen_by.is_host() && !has_stmts ? chosen_by : build_.shared(bools, "is_so");
  const auto is_constant = [&](const Value& value) {
    return value.kind == ValueKind::Table || (value.is_host() && pool().is_const(value.host));
  };
  Value results{.span = span, .kind = ValueKind::Tuple};
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
  build_.push(
      Stmt{.kind = StmtKind::Expr, .span = span, .expr = build_.typed(std::move(made)).expr});
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
      made[i] = conversions_.coerce(all_.numbers.as_low_bits(made[i], *dtype), *dtype);
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
  build_.push(Stmt{.kind = StmtKind::Let, .span = span, .var = var, .expr = before.expr});
  for (int i = 0; i < 2; ++i) {
    build_.into_branch(*branches[i], [&] {
      build_.push(Stmt{.kind = StmtKind::Assign, .span = span, .var = var, .expr = made[i].expr});
    });
  }
  all_.numbering.note_assignment(var);
  Value result = build_.read_var(var, span);
  result.facts = all_.facts.common_facts(made[0].facts, made[1].facts);
  result.is_exact = is_exact;
  return result;
}

}  // namespace cinch::sema
