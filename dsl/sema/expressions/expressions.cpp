// Dispatch by kind, literals, casts, blocks and lambdas.
#include "dsl/sema/expressions/expressions.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Expressions::expr(ast::ExprId id) {
  if (!id) return error_value(Span{});  // the grammar reported what is missing
  const ast::Expr& node = tree()[id];
  if (!all_.growth.may_go_on(node.span)) return error_value(node.span);
  const GrowthLimits::Level level(all_.growth);
  Value value = expr_node(id, node);
  if (!value.is_error() && !value.span.has_file()) value.span = node.span;
  text_.record_type(node.span, value);
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

Value Expressions::expr_node(ast::ExprId, const ast::Expr& node) {
  const Span span = node.span;
  return std::visit(
      Overloaded{
          [&](const ast::ErrorExpr&) { return error_value(span); },
          [&](const ast::Literal& e) { return literal_expr(e, span); },
          [&](const ast::NameRef& e) { return name_expr(e.name); },
          [&](const ast::FieldRef& e) { return field_expr(e, span); },
          [&](const ast::Call& e) { return all_.calls.call(e, span); },
          [&](const ast::Bitcast& e) { return bitcast(e, span); },
          [&](const ast::Index& e) { return index_expr(e, span); },
          [&](const ast::Range&) -> Value {
            return mistake<DiagKind::BadType>(span, "a value", "a range");
          },
          [&](const ast::Unary& e) { return all_.operators.unary(e, span); },
          [&](const ast::Binary& e) { return all_.operators.binary(e, span); },
          [&](const ast::Cast& e) { return cast(e, span); },
          [&](const ast::Lambda&) -> Value { return mistake<DiagKind::MisplacedLambda>(span); },
          [&](const ast::ArrayLiteral& e) { return array_literal(e, span); },
          [&](const ast::Tuple& e) { return tuple(e, span); },
          [&](const ast::WireLiteral& e) { return all_.bodies.wire_literal(e, span); },
          [&](const ast::If& e) { return if_expr(e, span); },
          [&](const ast::BlockExpr& e) {
            return build_.in_block(span, [&] { return block(e.block); });
          },
          [&](const ast::Paren& e) {
            Value value = expr(e.inner);
            value.span = span;
            return value;
          },
      },
      node.node);
}

Value Expressions::literal_expr(const ast::Literal& node, Span span) {
  switch (node.kind) {
    case ast::LiteralKind::Integer: {
      Value value = host_value(pool().const_int(static_cast<std::int64_t>(node.integer)), span);
      value.is_big = node.integer > static_cast<std::uint64_t>(INT64_MAX);
      value.is_hex = node.text.starts_with("0x");
      return value;
    }
    case ast::LiteralKind::Float:
      return host_value(pool().const_f64(node.number), span);
    case ast::LiteralKind::True:
    case ast::LiteralKind::False:
      return host_value(pool().const_bool(node.kind == ast::LiteralKind::True), span);
    case ast::LiteralKind::Inf:
      return host_value(pool().const_f64(__builtin_inf()), span);
    case ast::LiteralKind::Nan:
      return host_value(pool().const_f64(__builtin_nan("")), span);
    case ast::LiteralKind::Pi:
      return host_value(pool().const_f64(3.14159265358979323846), span);
  }
  return error_value(span);
}

Value Expressions::cast(const ast::Cast& node, Span span) {
  const Value value = expr(node.operand);
  const auto to = conversions_.dtype_of(node.type);
  if (value.is_error() || !to) return error_value(span);
  Value result = conversions_.convert(value, *to, span);
  result.span = span;
  return result;
}

Value Expressions::bitcast(const ast::Bitcast& node, Span span) {
  const auto to = conversions_.dtype_of(node.type);
  const Value value = conversions_.materialize(expr(node.operand));
  if (value.is_error() || !to) return error_value(span);
  if (!value.is_typed() || value.type.dtype.bits != to->bits)
    return mistake<DiagKind::BadType>(
        value.span, "a value of " + std::to_string(to->bits) + " bits", text_.describe(value));
  Expr expr{ExprKind::Bitcast, value.type, span};
  expr.type.dtype = *to;
  expr.args = {value.expr};
  return build_.typed(std::move(expr));
}

Value Expressions::tuple(const ast::Tuple& node, Span span) {
  Value made{.span = span, .kind = ValueKind::Tuple};
  for (ast::ExprId id : tree().list(node.elements)) {
    made.elements.push_back(expr(id));
    const Value& element = made.elements.back();
    if (element.is_error()) return error_value(span);
    const bool is_value =
        element.is_host() || element.is_typed() || element.kind == ValueKind::Table;
    if (!is_value)
      return mistake<DiagKind::BadType>(element.span, "a number or an array",
                                        text_.describe(element));
  }
  return made;
}

Value Expressions::table_of_rows(Value table, const std::vector<Value>& rows) {
  table.table_cols = static_cast<std::uint32_t>(rows.front().table.size());
  for (const Value& row : rows) {
    if (row.table.size() != table.table_cols)
      return mistake<DiagKind::Mismatch>(row.span, text_.describe(rows.front()),
                                         text_.describe(row));
    for (std::size_t i = 0; i < row.table.size(); ++i)
      add_element(table, row.table[i], row.big_elements[i]);
  }
  return all_.numbers.with_table_quotient(std::move(table), rows);
}

Value Expressions::array_literal(const ast::ArrayLiteral& node, Span span) {
  std::vector<Value> elements;
  bool all_constant = true, all_tables = true;
  for (ast::ExprId id : tree().list(node.elements)) {
    elements.push_back(expr(id));
    const Value& e = elements.back();
    if (e.is_error()) return error_value(span);
    all_constant &= e.is_host() && pool().is_const(e.host);
    all_tables &= e.kind == ValueKind::Table && e.table_cols == 0;
  }
  Value table{.span = span, .kind = ValueKind::Table};
  if (elements.empty())
    return mistake<DiagKind::BadType>(span, "an array of at least one element", "none");
  const auto is_hex = [](const Value& e) { return e.is_hex; };
  table.is_hex = std::ranges::all_of(elements, is_hex);
  if (all_constant) {
    for (const Value& e : elements) add_element(table, e.host, e.is_big);
    return all_.numbers.with_table_quotient(std::move(table), elements);
  }
  if (all_tables) return table_of_rows(std::move(table), elements);
  std::optional<DType> dtype = types_.own_dtype(elements.front());
  for (std::size_t i = 1; i < elements.size(); ++i) {
    const auto other = types_.own_dtype(elements[i]);
    if (!dtype || (other && widens_losslessly(*dtype, *other))) dtype = other;
  }
  const bool is_exact = !dtype && std::ranges::none_of(elements, [&](const Value& e) {
    return types_.is_real(e) || holds_big(e);
  });
  if (!dtype) dtype = types_.type_of_numbers(elements);
  const auto size = static_cast<std::int64_t>(elements.size());
  Expr made{ExprKind::Table, vector_type(*dtype, pool().const_int(size)), span};
  for (const Value& e : elements) {
    const Value scalar_value = FOUND(conversions_.coerce(e, *dtype));
    if (scalar_value.type.rank != 0)
      return mistake<DiagKind::BadType>(e.span, "a number", text_.describe(e));
    made.args.push_back(scalar_value.expr);
  }
  Value array = build_.typed(std::move(made));
  if (is_exact) array.remake = all_.numbers.array_remake(elements, array, span);
  array.is_exact = is_exact;
  if (is_exact) array.chosen = types_.constants_of(elements);
  return array;
}

std::optional<ExprId> Expressions::condition(ast::ExprId id) {
  const Value value = conversions_.one_bool(expr(id));
  return value.is_error() ? std::nullopt : std::optional(value.expr);
}

Value Expressions::block(ast::BlockId id) {
  if (!all_.growth.may_go_on(tree()[id].span)) return error_value(tree()[id].span);
  const GrowthLimits::Level level(all_.growth);
  env_->scopes.emplace_back();
  const ast::Block& node = tree()[id];
  for (ast::StmtId stmt : tree().list(node.stmts)) statement(stmt);
  Value value{.span = node.span, .kind = ValueKind::Unit};
  if (node.value.has_value()) value = expr(node.value);
  env_->scopes.pop_back();
  return value;
}

Value Expressions::lambda(ast::ExprId id, const std::vector<Type>& params, std::string_view name,
                          const std::function<Value(Value)>& finish) {
  const ast::Expr& node = tree()[id];
  if (const auto* paren = std::get_if<ast::Paren>(&node.node)) {
    return lambda(paren->inner, params, name, finish);
  }
  const auto* written = std::get_if<ast::Lambda>(&node.node);
  if (written == nullptr || written->params.size() != params.size()) {
    const std::size_t count = params.size();
    return mistake<DiagKind::ExpectedLambda>(
        node.span, name, std::to_string(count) + (count == 1 ? " parameter" : " parameters"));
  }
  Expr made{ExprKind::Lambda, {}, node.span};
  const ModeScope scope(mode_);
  ++mode_.lambda_depth;
  env_->scopes.emplace_back();
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ast::Name& param = written->params[i];
    Symbol symbol;
    symbol.value =
        build_.read_var(build_.add_var(param.text, params[i], false, param.span), param.span);
    symbol.span = param.span;
    symbol.noun = "a parameter of the lambda";
    made.params.push_back(out_.exprs[symbol.value.expr.index()].var);
    declare(param, symbol);
  }
  const Value body = build_.in_block(tree()[written->body].span, [&]() -> Value {
    Value value = FOUND(finish(expr(written->body)));
    if (!value.is_typed() || value.type.rank != 0)
      return mistake<DiagKind::BadType>(value.span, "one number as the lambda's value",
                                        text_.describe(value));
    return value;
  });
  env_->scopes.pop_back();
  if (body.is_error()) return error_value(node.span);
  made.type = body.type;
  made.args = {body.expr};
  return build_.typed(std::move(made));
}

}  // namespace cinch::sema
