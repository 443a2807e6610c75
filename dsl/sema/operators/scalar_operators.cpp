// Infix operators, operand types, and element-wise operators on host and device.
#include "dsl/sema/operators/operators.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

struct Infix {
  ScalarOp op;
  const char* text;
};

Infix infix_of(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::Mul:
      return {ScalarOp::mul, "*"};
    case ast::BinaryOp::Div:
      return {ScalarOp::div, "/"};
    case ast::BinaryOp::Rem:
      return {ScalarOp::mod, "%"};
    case ast::BinaryOp::Add:
      return {ScalarOp::add, "+"};
    case ast::BinaryOp::Sub:
      return {ScalarOp::sub, "-"};
    case ast::BinaryOp::Shl:
      return {ScalarOp::shl, "<<"};
    case ast::BinaryOp::Shr:
      return {ScalarOp::shr, ">>"};
    case ast::BinaryOp::BitAnd:
      return {ScalarOp::bit_and, "&"};
    case ast::BinaryOp::BitXor:
      return {ScalarOp::bit_xor, "^"};
    case ast::BinaryOp::BitOr:
      return {ScalarOp::bit_or, "|"};
    case ast::BinaryOp::Eq:
      return {ScalarOp::eq, "=="};
    case ast::BinaryOp::Ne:
      return {ScalarOp::ne, "!="};
    case ast::BinaryOp::Lt:
      return {ScalarOp::lt, "<"};
    case ast::BinaryOp::Le:
      return {ScalarOp::le, "<="};
    case ast::BinaryOp::Gt:
      return {ScalarOp::gt, ">"};
    case ast::BinaryOp::Ge:
      return {ScalarOp::ge, ">="};
    case ast::BinaryOp::And:
      return {ScalarOp::bit_and, "&&"};
    case ast::BinaryOp::Or:
      return {ScalarOp::bit_or, "||"};
    case ast::BinaryOp::MatMul:
      break;
  }
  return {ScalarOp::mul, "@"};
}

std::string verb_of(std::string_view name) {
  if (name == "+") return "add";
  if (name == "-") return "subtract";
  if (name == "*" || name == "@") return "multiply";
  if (name == "/") return "divide";
  for (std::string_view compare : {"==", "!=", "<", "<=", ">", ">="}) {
    if (name == compare) return "compare";
  }
  return "combine with `" + std::string(name) + "`";
}

bool is_comparison(ScalarOp op) {
  return scalar_op_info(op).result == ScalarResult::Bool && scalar_op_info(op).arity == 2;
}

bool is_for_integers(ScalarOp op) {
  const ScalarOperands operands = scalar_op_info(op).operands;
  return operands == ScalarOperands::Int || operands == ScalarOperands::Bits;
}

}  // namespace

Value Operators::unary(const ast::Unary& node, Span span) {
  const bool is_negation = node.op == ast::UnaryOp::Negate;
  const Value operand = all_.exprs.expr(node.operand);
  // An i64 can hold -2^63, but not the literal 2^63 alone.
  const bool is_least =
      is_negation && operand.is_big && pool().const_value(operand.host).as_int() == min_int(kI64);
  if (is_least) return host_value(operand.host, span);
  return scalar_op(is_negation ? ScalarOp::neg : ScalarOp::bit_not, {operand}, span,
                   is_negation ? "-" : "!");
}

Value Operators::binary(const ast::Binary& node, Span span) {
  const bool is_compared = is_comparison(infix_of(node.op).op);
  const Value a =
      is_compared ? all_.params.compared(node.lhs, node.rhs) : all_.exprs.expr(node.lhs);
  const Value b =
      is_compared ? all_.params.compared(node.rhs, node.lhs) : all_.exprs.expr(node.rhs);
  if (a.is_error() || b.is_error()) return error_value(span);
  if (is_compared && types_.own_dtype(b) != kBool) warn_of_chain(node, span);
  return binary_op(node.op, a, b, span);
}

Value Operators::binary_op(ast::BinaryOp op, const Value& a, const Value& b, Span span) {
  if (op == ast::BinaryOp::MatMul) return matmul(a, b, span);
  if (op == ast::BinaryOp::And || op == ast::BinaryOp::Or) {
    const std::string what = std::string("bools around `") + infix_of(op).text + "`";
    for (const Value* side : {&a, &b}) {
      if (types_.own_dtype(*side) != kBool)
        return mistake<DiagKind::BadType>(side->span, what, text_.describe(*side));
    }
  }
  const Infix infix = infix_of(op);
  return scalar_op(infix.op, {a, b}, span, infix.text);
}

// Warns that `a < b < c` compares the truth value of `a < b` with c.
void Operators::warn_of_chain(const ast::Binary& node, Span span) {
  const auto* first = std::get_if<ast::Binary>(&tree()[node.lhs].node);
  if (first == nullptr || !is_comparison(infix_of(first->op).op)) return;
  const dsl::SourceBuffer& source = *env_->unit->source;
  const std::string middle(source.text(tree()[first->rhs].span));
  reporter_.report<DiagKind::ChainedComparison>(span).note(
      "write `" + std::string(source.text(tree()[node.lhs].span)) + " && " + middle + " " +
      infix_of(node.op).text + " " + std::string(source.text(tree()[node.rhs].span)) + "`");
}

Value Operators::scalar_op(ScalarOp op, std::vector<Value> args, Span span, std::string_view name) {
  bool all_host = true, all_constant = true, has_table = false;
  for (const Value& arg : args) {
    if (arg.is_error()) return error_value(span);
    const bool is_value = arg.is_host() || arg.is_typed() || arg.kind == ValueKind::Table;
    if (!is_value)
      return mistake<DiagKind::CannotApply>(arg.span, std::string(name), text_.describe(arg));
    all_host &= arg.is_host();
    has_table |= arg.kind == ValueKind::Table;
    all_constant &= arg.kind == ValueKind::Table || (arg.is_host() && pool().is_const(arg.host));
  }
  if (std::any_of(args.begin(), args.end(), [](const Value& v) { return holds_big(v); })) {
    args = with_big_settled(op, std::move(args));
    all_host = std::all_of(args.begin(), args.end(), [](const Value& v) { return v.is_host(); });
    all_constant = false;
  }
  args = all_.numbers.with_quotients(op, std::move(args));
  const auto is_declared = [](const Value& v) { return v.declared.has_value(); };
  if (all_host && !mode_.in_host && std::any_of(args.begin(), args.end(), is_declared)) {
    return all_.numbers.declared_scalar_op(op, args, span, name);
  }
  const std::size_t errors = reporter_.num_errors();
  Value result = error_value(span);
  if (all_host) result = all_.numbers.host_scalar_op(op, args, span);
  if (!all_host && has_table && all_constant) result = all_.numbers.as_table_op(op, args, span);
  if (!result.is_error()) {
    result.quotient = all_.numbers.quotient_of(op, args, result, span);
    if (result.is_host()) result.remake = all_.numbers.host_remake(op, args, result, span);
    return result;
  }
  if (reporter_.num_errors() != errors) return error_value(span);
  if (all_host && mode_.in_host)
    return error_value(reporter_.report<DiagKind::NotKnownOnHost>(span, "a size")
                           .note("`" + std::string(name) + "` of these has no value on the host"));
  return typed_scalar_op(op, std::move(args), span, name);
}

// Gives literals of 2^63 or more a type: a float beside floats, else u64. In a size they stay as
// they are, too large. Operands with a type of their own decide for all.
std::vector<Value> Operators::with_big_settled(ScalarOp op, std::vector<Value> args) {
  const auto first = args.begin() + (op == ScalarOp::select ? 1 : 0);
  const auto some = [&](const auto& test) { return std::any_of(first, args.end(), test); };
  const bool has_float = some([&](const Value& v) { return types_.is_real(v); });
  const bool has_type = some([&](const Value& v) { return types_.own_dtype(v).has_value(); });
  const bool all_host =
      std::all_of(args.begin(), args.end(), [](const Value& v) { return v.is_host(); });
  for (Value& arg : args) {
    if (!arg.is_big || has_type) continue;
    if (has_float && all_host) {
      arg = conversions_.big_as_float(arg, kF64);
    } else if (!has_float && !mode_.in_host) {
      arg = conversions_.coerce(arg, kU64);
    }
  }
  return args;
}

Value Operators::cannot_combine(std::string_view name, const Value& a, const Value& b, Span span,
                                bool joins_types) {
  auto& diag = reporter_.report<DiagKind::CannotCombine>(span, verb_of(name), text_.describe(a),
                                                         text_.describe(b));
  text_.note_sizes(diag, {&a, &b});
  const auto own_a = types_.own_dtype(a), own_b = types_.own_dtype(b);
  if (joins_types && own_a && own_b && !common_arithmetic_type(*own_a, *own_b)) {
    diag.note("convert one of them with `as`");
  }
  return error_value(span);
}

std::optional<DType> Operators::cannot_apply(const Value& value, std::string_view name) {
  auto& diag =
      reporter_.report<DiagKind::CannotApply>(value.span, std::string(name), text_.describe(value));
  for (std::string_view of_bits : {"&", "|", "^", "<<", ">>", "popcount", "clz"}) {
    const bool is_run_time_float = value.is_typed() && is_float(value.type.dtype);
    if (name != of_bits || !is_run_time_float) continue;
    diag.note("it takes integers; the bits of a float are `bitcast<u" +
              std::to_string(value.type.dtype.bits) + ">(x)`");
  }
  return std::nullopt;
}

std::optional<DType> Operators::one_operand_type(ScalarOp op, const Value& arg,
                                                 std::string_view name) {
  const auto own = types_.own_dtype(arg);
  if (op == ScalarOp::popcount || op == ScalarOp::clz) {
    const DType type = own ? *own : conversions_.materialize(arg).type.dtype;
    if (is_bool(type)) return make_uint(1);  // bools have the type u1 here
    return is_float(type) ? cannot_apply(arg, name) : std::optional(type);
  }
  if (is_for_reals(op)) {
    const Value real = conversions_.as_float(arg, name);
    return real.is_error() ? std::nullopt : std::optional(real.type.dtype);
  }
  const DType type = own ? arithmetic_type(*own) : *types_.meet(arg, arg);
  return is_for_integers(op) && is_float(type) ? cannot_apply(arg, name) : std::optional(type);
}

std::optional<DType> Operators::operand_type(ScalarOp op, const std::vector<Value>& args, Span span,
                                             std::string_view name) {
  const auto refuse = [&](const Value& value) { return cannot_apply(value, name); };
  const bool is_logical = op == ScalarOp::bit_and || op == ScalarOp::bit_or ||
                          op == ScalarOp::bit_xor || op == ScalarOp::bit_not ||
                          op == ScalarOp::eq || op == ScalarOp::ne;
  const bool all_bool = std::all_of(args.begin(), args.end(),
                                    [&](const Value& v) { return types_.own_dtype(v) == kBool; });
  if (is_logical && all_bool) return kBool;
  if (op == ScalarOp::shl || op == ScalarOp::shr) {
    const auto own = types_.own_dtype(args[0]), by = types_.own_dtype(args[1]);
    const bool takes_other = !own && by && is_int(*by) && !types_.is_real(args[0]) &&
                             types_.has_room(args[0], arithmetic_type(*by));
    const DType type = own           ? arithmetic_type(*own)
                       : takes_other ? arithmetic_type(*by)
                                     : conversions_.materialize(args[0]).type.dtype;
    if (is_float(type)) return refuse(args[0]);
    if (!types_.can_coerce(args[1], type))
      return cannot_combine(name, args[0], args[1], span), std::nullopt;
    return type;
  }
  if (args.size() == 1) return one_operand_type(op, args[0], name);
  const std::size_t first = op == ScalarOp::select ? 1 : 0;
  if (op == ScalarOp::select) {
    const auto a = types_.own_dtype(args[1]), b = types_.own_dtype(args[2]);
    if (a && b && *a == *b) return a;
  }
  const std::span<const Value> joined = std::span(args).subspan(first);
  const auto is_small = [&](const Value& v) { return types_.is_small_number(v); };
  if (!is_for_reals(op) && std::ranges::all_of(joined, is_small)) return kI32;
  // Compares every operand with the first one that has a type of its own; exact numbers follow that
  // type.
  std::size_t base = first;
  while (base + 1 < args.size() && !types_.own_dtype(args[base])) ++base;
  if (!types_.own_dtype(args[base])) base = first;
  std::optional<DType> type;
  for (std::size_t i = first; i < args.size(); ++i) {
    if (i == base) continue;
    const auto met = types_.meet(args[base], args[i]);
    if (!met)
      return cannot_combine(name, args[std::min(i, base)], args[std::max(i, base)], span),
             std::nullopt;
    if (!type || widens_losslessly(*type, *met)) type = met;
  }
  if (is_for_reals(op) && !is_float(*type)) {
    if (type == kI64 && !types_.own_dtype(args[0]) && !types_.own_dtype(args[1])) return kF32;
    return refuse(is_float(types_.own_dtype(args[0]).value_or(kF32)) ? args[1] : args[0]);
  }
  if (is_for_integers(op) && is_float(*type)) {
    return refuse(is_float(types_.own_dtype(args[0]).value_or(kI32)) ? args[0] : args[1]);
  }
  return type;
}

Value Operators::typed_scalar_op(ScalarOp op, std::vector<Value> args, Span span,
                                 std::string_view name) {
  if (op == ScalarOp::select) {
    args[0] = conversions_.bool_value(args[0], "bools as the first operand of `select`");
    if (args[0].is_error()) return error_value(span);
  }
  for (const Value& arg : args) {
    if (all_.calls.check_lambda_array(arg).is_error()) return error_value(span);
  }
  args = all_.numbers.with_adaptables(op, std::move(args));
  const auto type = FOUND(operand_type(op, args, span, name));
  const auto shape = FOUND(broadcast(args, span, name));
  bool is_exact = scalar_op_info(op).result == ScalarResult::Same &&
                  scalar_op_info(op).operands != ScalarOperands::Real && !rounds(op) &&
                  op != ScalarOp::divide_or_zero;
  for (std::size_t i = op == ScalarOp::select ? 1 : 0; i < args.size(); ++i) {
    is_exact &=
        !types_.own_dtype(args[i]) && args[i].kind != ValueKind::Table && !holds_big(args[i]);
  }
  Expr made{.kind = ExprKind::Scalar, .type = shape, .span = span, .scalar_op = op};
  switch (scalar_op_info(op).result) {
    case ScalarResult::Same:
      made.type.dtype = type;
      break;
    case ScalarResult::Bool:
      made.type.dtype = kBool;
      break;
    case ScalarResult::U32:
      made.type.dtype = kU32;
      break;
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool is_choice = op == ScalarOp::select && i == 0;
    const bool fits = is_choice || types_.can_coerce(args[i], type);
    if (!fits) return cannot_combine(name, args[0], args[i == 0 ? args.size() - 1 : i], span);
    const Value operand =
        is_choice ? args[i] : conversions_.coerce(all_.numbers.as_operand(op, args[i], type), type);
    const Value arg = FOUND(as_row(operand, shape));
    made.args.push_back(arg.expr);
  }
  Value value = build_.typed(std::move(made));
  value.facts = all_.facts.facts_of_op(op, args, type);
  value.is_exact = is_exact && !is_comparison(op) && (type == kI64 || type == kI32);
  if (value.is_exact || (is_int(type) && types_.stays_adaptable(op, args))) {
    value.remake = all_.numbers.remake_of(op, args, value, span);
  }
  if (value.is_exact && op == ScalarOp::select) {
    value.chosen = types_.constants_of(std::span(args).subspan(1));
  }
  return value;
}

}  // namespace cinch::sema
