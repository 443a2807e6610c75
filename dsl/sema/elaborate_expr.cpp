// Expressions: dispatch, literals, array literals, conversions, `if`, blocks and lambdas.
#include <algorithm>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Elaborator::expr(ast::ExprId id) {
  if (!id) return error({});  // the grammar reported what is missing
  const ast::Expr& node = tree()[id];
  if (!may_go_on(node.span)) return error(node.span);
  const Level level(*this);
  Value value = expr_node(id, node);
  if (!value.is_error() && !value.span.has_file()) value.span = node.span;
  record_type(node.span, value);
  return value;
}

namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

Value Elaborator::expr_node(ast::ExprId, const ast::Expr& node) {
  const Span span = node.span;
  return std::visit(
      Overloaded{
          [&](const ast::ErrorExpr&) { return error(span); },
          [&](const ast::Literal& e) { return literal_expr(e, span); },
          [&](const ast::NameRef& e) { return name_expr(e.name); },
          [&](const ast::FieldRef& e) { return field_expr(e, span); },
          [&](const ast::Call& e) { return call(e, span); },
          [&](const ast::Bitcast& e) { return bitcast(e, span); },
          [&](const ast::Index& e) { return index_expr(e, span); },
          [&](const ast::Range&) {
            reporter_.report<DiagKind::BadType>(span, "a value", "a range");
            return error(span);
          },
          [&](const ast::Unary& e) { return unary(e, span); },
          [&](const ast::Binary& e) { return binary(e, span); },
          [&](const ast::Cast& e) { return cast(e, span); },
          [&](const ast::Lambda&) {
            reporter_.report<DiagKind::MisplacedLambda>(span);
            return error(span);
          },
          [&](const ast::ArrayLiteral& e) { return array_literal(e, span); },
          [&](const ast::Tuple& e) { return tuple(e, span); },
          [&](const ast::WireLiteral& e) { return wire_literal(e, span); },
          [&](const ast::If& e) { return if_expr(e, span); },
          [&](const ast::BlockExpr& e) { return in_block(span, [&] { return block(e.block); }); },
          [&](const ast::Paren& e) {
            Value value = expr(e.inner);
            value.span = span;
            return value;
          },
      },
      node.node);
}

Value Elaborator::literal_expr(const ast::Literal& node, Span span) {
  switch (node.kind) {
    case ast::LiteralKind::Integer: {
      Value value = host(pool().const_int(static_cast<std::int64_t>(node.integer)), span);
      value.is_big = node.integer > static_cast<std::uint64_t>(INT64_MAX);
      value.is_hex = node.text.starts_with("0x");
      return value;
    }
    case ast::LiteralKind::Float:
      return host(pool().const_f64(node.number), span);
    case ast::LiteralKind::True:
    case ast::LiteralKind::False:
      return host(pool().const_bool(node.kind == ast::LiteralKind::True), span);
    case ast::LiteralKind::Inf:
      return host(pool().const_f64(__builtin_inf()), span);
    case ast::LiteralKind::Nan:
      return host(pool().const_f64(__builtin_nan("")), span);
    case ast::LiteralKind::Pi:
      return host(pool().const_f64(3.14159265358979323846), span);
  }
  return error(span);
}

Value Elaborator::cast(const ast::Cast& node, Span span) {
  const Value value = expr(node.operand);
  const auto to = dtype_of(node.type);
  if (value.is_error() || !to) return error(span);
  Value result = convert(value, *to, span);
  result.span = span;
  return result;
}

Value Elaborator::bitcast(const ast::Bitcast& node, Span span) {
  const auto to = dtype_of(node.type);
  const Value value = materialize(expr(node.operand));
  if (value.is_error() || !to) return error(span);
  if (!value.is_typed() || value.type.dtype.bits != to->bits) {
    reporter_.report<DiagKind::BadType>(
        value.span, "a value of " + std::to_string(to->bits) + " bits", describe(value));
    return error(span);
  }
  Expr expr{ExprKind::Bitcast, value.type, span};
  expr.type.dtype = *to;
  expr.args = {value.expr};
  return typed(std::move(expr));
}

Value Elaborator::tuple(const ast::Tuple& node, Span span) {
  Value made;
  made.kind = ValueKind::Tuple;
  made.span = span;
  for (ast::ExprId id : tree().list(node.elements)) {
    made.elements.push_back(expr(id));
    const Value& element = made.elements.back();
    if (element.is_error()) return error(span);
    const bool is_value =
        element.is_host() || element.is_typed() || element.kind == ValueKind::Table;
    if (!is_value) {
      reporter_.report<DiagKind::BadType>(element.span, "a number or an array", describe(element));
      return error(span);
    }
  }
  return made;
}

Value Elaborator::table_of_rows(Value table, const std::vector<Value>& rows) {
  table.table_cols = static_cast<std::uint32_t>(rows.front().table.size());
  for (const Value& row : rows) {
    if (row.table.size() != table.table_cols) {
      reporter_.report<DiagKind::Mismatch>(row.span, describe(rows.front()), describe(row));
      return error(table.span);
    }
    for (std::size_t i = 0; i < row.table.size(); ++i)
      add_element(table, row.table[i], row.big_elements[i]);
  }
  return with_table_quotient(std::move(table), rows);
}

Value Elaborator::array_literal(const ast::ArrayLiteral& node, Span span) {
  std::vector<Value> elements;
  bool all_constant = true, all_tables = true;
  for (ast::ExprId id : tree().list(node.elements)) {
    elements.push_back(expr(id));
    const Value& e = elements.back();
    if (e.is_error()) return error(span);
    all_constant &= e.is_host() && pool().is_const(e.host);
    all_tables &= e.kind == ValueKind::Table && e.table_cols == 0;
  }
  Value table;
  table.kind = ValueKind::Table;
  table.span = span;
  if (elements.empty()) {
    reporter_.report<DiagKind::BadType>(span, "an array of at least one element", "none");
    return error(span);
  }
  const auto is_hex = [](const Value& e) { return e.is_hex; };
  table.is_hex = std::ranges::all_of(elements, is_hex);
  if (all_constant) {
    for (const Value& e : elements) add_element(table, e.host, e.is_big);
    return with_table_quotient(std::move(table), elements);
  }
  if (all_tables) return table_of_rows(std::move(table), elements);
  std::optional<DType> dtype = own_dtype(elements.front());
  for (std::size_t i = 1; i < elements.size(); ++i) {
    const auto other = own_dtype(elements[i]);
    if (!dtype || (other && widens_losslessly(*dtype, *other))) dtype = other;
  }
  const bool is_exact = !dtype && std::ranges::none_of(elements, [&](const Value& e) {
    return is_real(e) || holds_big(e);
  });
  if (!dtype) dtype = type_of_numbers(elements);
  const auto size = static_cast<std::int64_t>(elements.size());
  Expr made{ExprKind::Table, vector(*dtype, pool().const_int(size)), span};
  for (const Value& e : elements) {
    const Value scalar_value = coerce(e, *dtype);
    if (scalar_value.is_error()) return error(span);
    if (scalar_value.type.rank != 0) {
      reporter_.report<DiagKind::BadType>(e.span, "a number", describe(e));
      return error(span);
    }
    made.args.push_back(scalar_value.expr);
  }
  Value array = typed(std::move(made));
  if (is_exact) array.remake = array_remake(elements, array, span);
  array.is_exact = is_exact;
  if (is_exact) array.chosen = constants_of(elements);
  return array;
}

// What exact numbers are among themselves.
DType Elaborator::type_of_numbers(const std::vector<Value>& numbers) {
  const auto is = [&](const auto& test) {
    return std::any_of(numbers.begin(), numbers.end(), test);
  };
  if (is([&](const Value& v) { return is_real(v); })) return kF32;
  if (is([](const Value& v) { return v.is_exact && v.type.dtype == kI32; })) return kI32;
  return is([](const Value& v) { return holds_big(v); }) ? kU64 : kI64;
}

Value Elaborator::bool_value(const Value& value, std::string_view what) {
  if (value.is_error()) return value;
  if (own_dtype(value) != kBool) {
    reporter_.report<DiagKind::BadType>(value.span, std::string(what), describe(value));
    return error(value.span);
  }
  return coerce(value, kBool);
}

// A condition of `if`, `while` or `assert`: a scalar.
std::optional<ExprId> Elaborator::condition(ast::ExprId id) {
  const Value value = one_bool(expr(id));
  return value.is_error() ? std::nullopt : std::optional(value.expr);
}

Value Elaborator::one_bool(const Value& chosen_by) {
  Value value = bool_value(chosen_by, "a bool as condition");
  if (value.is_error() || value.type.rank == 0) return value;
  reporter_.report<DiagKind::BadType>(value.span, "one bool as condition", describe(value))
      .note("`any` and `all` make one bool of many; `select(c, a, b)` chooses element by element");
  return error(value.span);
}

Value Elaborator::if_expr(const ast::If& node, Span span) {
  const Value chosen_by = expr(node.condition);
  const auto branch = [&](const std::function<Value()>& body) {
    const Value value = in_block(span, body);
    forget_masks();
    return value;
  };
  const auto facts_before = variable_facts_;
  const Value a = branch([&] { return block(node.then); });
  const auto facts_of_then = std::exchange(variable_facts_, facts_before);
  const Value b = branch([&] {
    if (!node.otherwise.has_value()) {
      Value unit;
      unit.kind = ValueKind::Unit;
      unit.span = span;
      return unit;
    }
    const ast::Expr& other = tree()[node.otherwise];
    if (const auto* braces = std::get_if<ast::BlockExpr>(&other.node)) return block(braces->block);
    return expr(node.otherwise);
  });
  join_variable_facts(facts_of_then);
  return join_branches(chosen_by, a, b, span);
}

Value Elaborator::join_branches(const Value& chosen_by, Value a, Value b, Span span) {
  if (chosen_by.is_error() || a.is_error() || b.is_error()) return error(span);
  const bool is_on_host =
      chosen_by.is_host() && a.is_host() && b.is_host() && !a.is_big && !b.is_big;
  if (is_on_host && pool().type(chosen_by.host) == HostType::Bool) {
    const std::vector<Value> args = with_quotients(ScalarOp::select, {chosen_by, a, b});
    Value value = host_scalar_op(ScalarOp::select, args, span);
    if (value.is_error()) return value;
    value.quotient = quotient_of(ScalarOp::select, args, value, span);
    value.remake = host_remake(ScalarOp::select, args, value, span);
    return value;
  }
  const bool is_decided = chosen_by.is_host() && pool().is_const(chosen_by.host) &&
                          pool().type(chosen_by.host) == HostType::Bool;
  if (is_decided) return pool().const_value(chosen_by.host).as_bool() ? a : b;
  if (a.kind == ValueKind::Tuple || b.kind == ValueKind::Tuple) {
    reporter_.report<DiagKind::BadType>(span, "one value of each branch", "several");
    return error(span);
  }
  const Value test = one_bool(chosen_by);
  if (test.is_error()) return error(span);
  const bool is_unit = a.kind == ValueKind::Unit || b.kind == ValueKind::Unit;
  if (!is_unit) return choose(test, std::move(a), std::move(b), span);
  Expr made{ExprKind::If, {}, span};
  made.args = {test.expr, a.expr, b.expr};
  // A branch without statements stands before one that has some.
  if (!a.expr) made.args[1] = typed(Expr{ExprKind::Block, {}, span}).expr;
  Value value = typed(std::move(made));
  value.kind = ValueKind::Unit;
  return value;
}

// A value of one of two branches, decided on the device.
Value Elaborator::choose(const Value& test, Value a, Value b, Span span) {
  const std::vector<Value> met = with_adaptables(ScalarOp::select, {test, a, b});
  a = met[1];
  b = met[2];
  const bool is_exact = !own_dtype(a) && !own_dtype(b) && !is_real(a) && !is_real(b) &&
                        !holds_big(a) && !holds_big(b);
  const bool is_anew = has_quotient(a) || has_quotient(b) || a.remake != nullptr ||
                       b.remake != nullptr || may_be_negative(a) || may_be_negative(b);
  const bool is_adaptable = stays_adaptable(ScalarOp::select, std::vector{test, a, b});
  const Value branches[] = {a, b};
  auto dtype = own_dtype(a);
  const auto other = own_dtype(b);
  if (!dtype || (other && widens_losslessly(*dtype, *other))) dtype = other;
  if (!dtype) dtype = is_small_number(a) && is_small_number(b) ? kI32 : meet(a, b);
  const bool fits = a.kind != ValueKind::Payload && b.kind != ValueKind::Payload &&
                    a.kind != ValueKind::Wire && b.kind != ValueKind::Wire && dtype &&
                    can_coerce(a, *dtype) && can_coerce(b, *dtype);
  if (fits) {
    a = coerce(as_low_bits(a, *dtype), *dtype);
    b = coerce(as_low_bits(b, *dtype), *dtype);
  }
  if (a.is_error() || b.is_error()) return error(span);
  if (!fits || !same_shape(a.type, b.type)) {
    auto& diag = reporter_.report<DiagKind::BranchesDiffer>(span, describe(a), describe(b));
    note_sizes(diag, {&a, &b});
    return error(span);
  }
  Expr made{ExprKind::If, a.type, span};
  made.args = {test.expr, a.expr, b.expr};
  Value value = typed(std::move(made));
  value.facts = common_facts(a.facts, b.facts);
  value.is_exact = is_exact;
  if (is_exact) value.chosen = constants_of(branches);
  if (is_anew && (is_exact || is_adaptable)) {
    value.remake = branch_remake(test, branches, value, span);
  }
  return value;
}

Value Elaborator::block(ast::BlockId id) {
  if (!may_go_on(tree()[id].span)) return error(tree()[id].span);
  const Level level(*this);
  env_->scopes.emplace_back();
  const Value value = block_in_scope(id);
  env_->scopes.pop_back();
  return value;
}

Value Elaborator::block_in_scope(ast::BlockId id) {
  const ast::Block& node = tree()[id];
  for (ast::StmtId stmt : tree().list(node.stmts)) statement(stmt);
  if (node.value.has_value()) return expr(node.value);
  Value unit;
  unit.kind = ValueKind::Unit;
  unit.span = node.span;
  return unit;
}

Value Elaborator::lambda(ast::ExprId id, const std::vector<Type>& params, std::string_view name,
                         const std::function<Value(Value)>& finish) {
  const ast::Expr& node = tree()[id];
  if (const auto* paren = std::get_if<ast::Paren>(&node.node)) {
    return lambda(paren->inner, params, name, finish);
  }
  const auto* written = std::get_if<ast::Lambda>(&node.node);
  if (written == nullptr || written->params.size() != params.size()) {
    const std::size_t count = params.size();
    reporter_.report<DiagKind::ExpectedLambda>(
        node.span, name, std::to_string(count) + (count == 1 ? " parameter" : " parameters"));
    return error(node.span);
  }
  Expr made{ExprKind::Lambda, {}, node.span};
  ++lambda_depth_;
  env_->scopes.emplace_back();
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ast::Name& param = written->params[i];
    Symbol symbol;
    symbol.value = read_var(add_var(param.text, params[i], false, param.span), param.span);
    symbol.span = param.span;
    symbol.noun = "a parameter of the lambda";
    made.params.push_back(out_.exprs[symbol.value.expr.index()].var);
    declare(param, symbol);
  }
  const Value body = in_block(tree()[written->body].span, [&] {
    Value value = finish(expr(written->body));
    if (value.is_error()) return value;
    if (!value.is_typed() || value.type.rank != 0) {
      reporter_.report<DiagKind::BadType>(value.span, "one number as the lambda's value",
                                          describe(value));
      return error(value.span);
    }
    return value;
  });
  env_->scopes.pop_back();
  --lambda_depth_;
  if (body.is_error()) return error(node.span);
  made.type = body.type;
  made.args = {body.expr};
  return typed(std::move(made));
}

}  // namespace cinch::sema
