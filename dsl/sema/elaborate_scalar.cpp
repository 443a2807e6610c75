// Element-wise operators: operand types, broadcasting, and the choice between host and device.
#include <algorithm>

#include "dsl/sema/elaborator.h"

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

bool keeps_exactness(ScalarOp op) {
  return scalar_op_info(op).result == ScalarResult::Same &&
         scalar_op_info(op).operands != ScalarOperands::Real && !rounds(op) &&
         op != ScalarOp::divide_or_zero;
}

}  // namespace

// The language rounds floats alone.
bool Elaborator::is_for_reals(ScalarOp op) {
  return scalar_op_info(op).operands == ScalarOperands::Real || rounds(op);
}

Value Elaborator::unary(const ast::Unary& node, Span span) {
  const bool is_negation = node.op == ast::UnaryOp::Negate;
  const Value operand = expr(node.operand);
  // 2^63 alone is no i64, and -2^63 is one.
  const bool is_least =
      is_negation && operand.is_big && pool().const_value(operand.host).as_int() == min_int(kI64);
  if (is_least) return host(operand.host, span);
  return scalar_op(is_negation ? ScalarOp::neg : ScalarOp::bit_not, {operand}, span,
                   is_negation ? "-" : "!");
}

Value Elaborator::binary(const ast::Binary& node, Span span) {
  const bool is_compared = is_comparison(infix_of(node.op).op);
  const Value a = is_compared ? compared(node.lhs, node.rhs) : expr(node.lhs);
  const Value b = is_compared ? compared(node.rhs, node.lhs) : expr(node.rhs);
  if (a.is_error() || b.is_error()) return error(span);
  if (is_compared && own_dtype(b) != kBool) warn_of_chain(node, span);
  return binary_op(node.op, a, b, span);
}

Value Elaborator::binary_op(ast::BinaryOp op, const Value& a, const Value& b, Span span) {
  if (op == ast::BinaryOp::MatMul) return matmul(a, b, span);
  if (op == ast::BinaryOp::And || op == ast::BinaryOp::Or) {
    const std::string what = std::string("bools around `") + infix_of(op).text + "`";
    for (const Value* side : {&a, &b}) {
      if (own_dtype(*side) != kBool) {
        reporter_.report<DiagKind::BadType>(side->span, what, describe(*side));
        return error(span);
      }
    }
  }
  const Infix infix = infix_of(op);
  return scalar_op(infix.op, {a, b}, span, infix.text);
}

// `a < b < c` compares the truth of `a < b` with c.
void Elaborator::warn_of_chain(const ast::Binary& node, Span span) {
  const auto* first = std::get_if<ast::Binary>(&tree()[node.lhs].node);
  if (first == nullptr || !is_comparison(infix_of(first->op).op)) return;
  const dsl::SourceBuffer& source = *env_->unit->source;
  const std::string middle(source.text(tree()[first->rhs].span));
  reporter_.report<DiagKind::ChainedComparison>(span).note(
      "write `" + std::string(source.text(tree()[node.lhs].span)) + " && " + middle + " " +
      infix_of(node.op).text + " " + std::string(source.text(tree()[node.rhs].span)) + "`");
}

Value Elaborator::scalar_op(ScalarOp op, std::vector<Value> args, Span span,
                            std::string_view name) {
  bool all_host = true, all_constant = true, has_table = false;
  for (const Value& arg : args) {
    if (arg.is_error()) return error(span);
    const bool is_value = arg.is_host() || arg.is_typed() || arg.kind == ValueKind::Table;
    if (!is_value) {
      reporter_.report<DiagKind::CannotApply>(arg.span, std::string(name), describe(arg));
      return error(span);
    }
    all_host &= arg.is_host();
    has_table |= arg.kind == ValueKind::Table;
    all_constant &= arg.kind == ValueKind::Table || (arg.is_host() && pool().is_const(arg.host));
  }
  if (std::any_of(args.begin(), args.end(), [](const Value& v) { return holds_big(v); })) {
    args = with_big_settled(op, std::move(args));
    all_host = std::all_of(args.begin(), args.end(), [](const Value& v) { return v.is_host(); });
    all_constant = false;
  }
  args = with_quotients(op, std::move(args));
  const auto is_declared = [](const Value& v) { return v.declared.has_value(); };
  if (all_host && !in_host_ && std::any_of(args.begin(), args.end(), is_declared)) {
    return declared_scalar_op(op, args, span, name);
  }
  const std::size_t errors = reporter_.num_errors();
  Value result = error(span);
  if (all_host) result = host_scalar_op(op, args, span);
  if (!all_host && has_table && all_constant) result = as_table_op(op, args, span);
  if (!result.is_error()) {
    result.quotient = quotient_of(op, args, result, span);
    if (result.is_host()) result.remake = host_remake(op, args, result, span);
    return result;
  }
  if (reporter_.num_errors() != errors) return error(span);
  if (all_host && in_host_) {
    reporter_.report<DiagKind::NotKnownOnHost>(span, "a size")
        .note("`" + std::string(name) + "` of these has no value on the host");
    return error(span);
  }
  return typed_scalar_op(op, std::move(args), span, name);
}

// Literals of 2^63 or more among numbers: floats where they meet one, else u64. In a size they stay
// what they are, which is too much; operands with a type of their own decide for all.
std::vector<Value> Elaborator::with_big_settled(ScalarOp op, std::vector<Value> args) {
  const auto first = args.begin() + (op == ScalarOp::select ? 1 : 0);
  const auto some = [&](const auto& test) { return std::any_of(first, args.end(), test); };
  const bool has_float = some([&](const Value& v) { return is_real(v); });
  const bool has_type = some([&](const Value& v) { return own_dtype(v).has_value(); });
  const bool all_host =
      std::all_of(args.begin(), args.end(), [](const Value& v) { return v.is_host(); });
  for (Value& arg : args) {
    if (!arg.is_big || has_type) continue;
    if (has_float && all_host) {
      arg = big_as_float(arg, kF64);
    } else if (!has_float && !in_host_) {
      arg = coerce(arg, kU64);
    }
  }
  return args;
}

Value Elaborator::cannot_combine(std::string_view name, const Value& a, const Value& b, Span span,
                                 bool joins_types) {
  auto& diag =
      reporter_.report<DiagKind::CannotCombine>(span, verb_of(name), describe(a), describe(b));
  note_sizes(diag, {&a, &b});
  const auto own_a = own_dtype(a), own_b = own_dtype(b);
  if (joins_types && own_a && own_b && !common_arithmetic_type(*own_a, *own_b)) {
    diag.note("convert one of them with `as`");
  }
  return error(span);
}

std::optional<DType> Elaborator::cannot_apply(const Value& value, std::string_view name) {
  auto& diag =
      reporter_.report<DiagKind::CannotApply>(value.span, std::string(name), describe(value));
  for (std::string_view of_bits : {"&", "|", "^", "<<", ">>", "popcount", "clz"}) {
    const bool is_run_time_float = value.is_typed() && is_float(value.type.dtype);
    if (name != of_bits || !is_run_time_float) continue;
    diag.note("it takes integers; the bits of a float are `bitcast<u" +
              std::to_string(value.type.dtype.bits) + ">(x)`");
  }
  return std::nullopt;
}

std::optional<DType> Elaborator::one_operand_type(ScalarOp op, const Value& arg,
                                                  std::string_view name) {
  const auto own = own_dtype(arg);
  if (op == ScalarOp::popcount || op == ScalarOp::clz) {
    const DType type = own ? *own : materialize(arg).type.dtype;
    if (is_bool(type)) return make_uint(1);  // bools count as u1
    return is_float(type) ? cannot_apply(arg, name) : std::optional(type);
  }
  if (is_for_reals(op)) {
    const Value real = as_float(arg, name);
    return real.is_error() ? std::nullopt : std::optional(real.type.dtype);
  }
  const DType type = own ? arithmetic_type(*own) : *meet(arg, arg);
  return is_for_integers(op) && is_float(type) ? cannot_apply(arg, name) : std::optional(type);
}

// Numbers among themselves that a device must choose from or join are i32 where they fit.
bool Elaborator::is_small_number(const Value& value) {
  if (value.is_typed() && value.is_exact) return value.type.dtype == kI32;
  const bool is_exact =
      value.is_host() && !value.declared && !value.is_big && pool().is_const(value.host);
  if (!is_exact || pool().type(value.host) != HostType::Int) return false;
  const std::int64_t number = pool().const_value(value.host).as_int();
  return number >= min_int(kI32) && number <= static_cast<std::int64_t>(max_int(kI32));
}

std::optional<DType> Elaborator::operand_type(ScalarOp op, const std::vector<Value>& args,
                                              Span span, std::string_view name) {
  const auto refuse = [&](const Value& value) { return cannot_apply(value, name); };
  const bool is_logical = op == ScalarOp::bit_and || op == ScalarOp::bit_or ||
                          op == ScalarOp::bit_xor || op == ScalarOp::bit_not ||
                          op == ScalarOp::eq || op == ScalarOp::ne;
  const bool all_bool =
      std::all_of(args.begin(), args.end(), [&](const Value& v) { return own_dtype(v) == kBool; });
  if (is_logical && all_bool) return kBool;
  if (op == ScalarOp::shl || op == ScalarOp::shr) {
    const auto own = own_dtype(args[0]), by = own_dtype(args[1]);
    const bool takes_other =
        !own && by && is_int(*by) && !is_real(args[0]) && has_room(args[0], arithmetic_type(*by));
    const DType type = own           ? arithmetic_type(*own)
                       : takes_other ? arithmetic_type(*by)
                                     : materialize(args[0]).type.dtype;
    if (is_float(type)) return refuse(args[0]);
    if (!can_coerce(args[1], type))
      return cannot_combine(name, args[0], args[1], span), std::nullopt;
    return type;
  }
  if (args.size() == 1) return one_operand_type(op, args[0], name);
  const std::size_t first = op == ScalarOp::select ? 1 : 0;
  if (op == ScalarOp::select) {
    const auto a = own_dtype(args[1]), b = own_dtype(args[2]);
    if (a && b && *a == *b) return a;
  }
  const std::span<const Value> joined = std::span(args).subspan(first);
  const auto is_small = [&](const Value& v) { return is_small_number(v); };
  if (!is_for_reals(op) && std::ranges::all_of(joined, is_small)) return kI32;
  // Every operand against the first that has a type of its own: exact numbers follow it.
  std::size_t base = first;
  while (base + 1 < args.size() && !own_dtype(args[base])) ++base;
  if (!own_dtype(args[base])) base = first;
  std::optional<DType> type;
  for (std::size_t i = first; i < args.size(); ++i) {
    if (i == base) continue;
    const auto met = meet(args[base], args[i]);
    if (!met)
      return cannot_combine(name, args[std::min(i, base)], args[std::max(i, base)], span),
             std::nullopt;
    if (!type || widens_losslessly(*type, *met)) type = met;
  }
  if (is_for_reals(op) && !is_float(*type)) {
    if (type == kI64 && !own_dtype(args[0]) && !own_dtype(args[1])) return kF32;
    return refuse(is_float(own_dtype(args[0]).value_or(kF32)) ? args[1] : args[0]);
  }
  if (is_for_integers(op) && is_float(*type)) {
    return refuse(is_float(own_dtype(args[0]).value_or(kI32)) ? args[0] : args[1]);
  }
  return type;
}

// A vector beside a matrix of as many columns is a row of it.
bool Elaborator::is_row_of(const Type& a, const Type& b) {
  const Type& vector = a.rank == 1 ? a : b;
  const Type& matrix = a.rank == 1 ? b : a;
  return vector.rank == 1 && matrix.rank == 2 && !is_by_rows() &&
         sizes_.proves_equal(vector.dims[0], matrix.dims[1]);
}

Value Elaborator::as_row(const Value& value, const Type& shape) {
  if (!value.is_typed() || value.type.rank != 1 || shape.rank != 2) return value;
  const HostExprId one = pool().const_int(1);
  return reshaped(value, matrix(value.type.dtype, one, value.type.dims[0]), value.span);
}

// The shape that operands of these shapes give together.
std::optional<Type> Elaborator::broadcast(std::span<const Value> args, Span span,
                                          std::string_view name) {
  Type shape = scalar(kF32);
  const Value* shaped = nullptr;
  for (const Value& arg : args) {
    const Type type = value_type(arg);
    if (type.rank == 0) continue;
    if (shaped == nullptr) {
      shape = type;
      shaped = &arg;
      continue;
    }
    if (type.rank != shape.rank && is_row_of(type, shape)) {
      if (type.rank == 2) shape = type;
      continue;
    }
    bool fits = type.rank == shape.rank;
    for (int i = 0; fits && i < type.rank; ++i) {
      if (sizes_.proves_equal(type.dims[i], shape.dims[i]) || is_one(type.dims[i])) continue;
      if (is_one(shape.dims[i])) {
        shape.dims[i] = type.dims[i];
      } else {
        fits = false;
      }
    }
    if (!fits) {
      cannot_combine(name, *shaped, arg, span);
      return std::nullopt;
    }
  }
  return shape;
}

// May the number be one of this type? A constant is looked at.
bool Elaborator::has_room(const Value& number, DType type) {
  if (holds_big(number)) return false;
  const bool is_constant = number.is_host() && pool().is_const(number.host);
  return !is_constant || pool().type(number.host) != HostType::Int ||
         fits(pool().const_value(number.host).as_int(), type);
}

// What bounds the results of integer arithmetic, whatever the values are.
IndexFacts Elaborator::facts_of_op(ScalarOp op, const std::vector<Value>& args, DType type) {
  if (args.size() != 2 || !args[1].is_host() || pool().type(args[1].host) != HostType::Int)
    return {};
  if (!is_int(type) || type.bits > 32) return {};
  const HostExprId b = args[1].host, one = pool().const_int(1);
  const bool is_unsigned = is_unsigned_int(type);
  IndexFacts facts;
  switch (op) {
    case ScalarOp::mod:
      if (is_unsigned && sizes_.proves_less_equal(one, b)) facts.limit = b;
      return facts;
    case ScalarOp::min:
      if (is_unsigned && sizes_.proves_nonnegative(b)) facts.limit = pool().add(b, one);
      return facts;
    case ScalarOp::bit_and:
      if ((is_unsigned || sizes_.constant(b)) && sizes_.proves_nonnegative(b)) {
        facts.limit = pool().add(b, one);
      }
      return facts;
    case ScalarOp::shr: {
      const auto by = sizes_.constant(b);
      const bool is_plain = is_unsigned && by && *by >= 0 && *by < type.bits;
      if (is_plain) facts.limit = pool().const_int(std::int64_t{1} << (type.bits - *by));
      return facts;
    }
    default:
      return facts;
  }
}

Value Elaborator::typed_scalar_op(ScalarOp op, std::vector<Value> args, Span span,
                                  std::string_view name) {
  if (op == ScalarOp::select) {
    args[0] = bool_value(args[0], "bools as the first operand of `select`");
    if (args[0].is_error()) return error(span);
  }
  for (const Value& arg : args) {
    if (check_lambda_array(arg).is_error()) return error(span);
  }
  args = with_adaptables(op, std::move(args));
  const auto type = operand_type(op, args, span, name);
  if (!type) return error(span);
  const auto shape = broadcast(args, span, name);
  if (!shape) return error(span);
  bool is_exact = keeps_exactness(op);
  for (std::size_t i = op == ScalarOp::select ? 1 : 0; i < args.size(); ++i) {
    is_exact &= !own_dtype(args[i]) && args[i].kind != ValueKind::Table && !holds_big(args[i]);
  }
  Expr made{ExprKind::Scalar, *shape, span};
  made.scalar_op = op;
  switch (scalar_op_info(op).result) {
    case ScalarResult::Same:
      made.type.dtype = *type;
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
    const bool fits = is_choice || can_coerce(args[i], *type);
    if (!fits) return cannot_combine(name, args[0], args[i == 0 ? args.size() - 1 : i], span);
    const Value operand = is_choice ? args[i] : coerce(as_operand(op, args[i], *type), *type);
    const Value arg = as_row(operand, *shape);
    if (arg.is_error()) return error(span);
    made.args.push_back(arg.expr);
  }
  Value value = typed(std::move(made));
  value.facts = facts_of_op(op, args, *type);
  value.is_exact = is_exact && !is_comparison(op) && (*type == kI64 || *type == kI32);
  if (value.is_exact || (is_int(*type) && stays_adaptable(op, args))) {
    value.remake = remake_of(op, args, value, span);
  }
  if (value.is_exact && op == ScalarOp::select) {
    value.chosen = constants_of(std::span(args).subspan(1));
  }
  return value;
}

Value Elaborator::check_lambda_array(Value value) {
  if (lambda_depth_ == 0 || !value.is_typed() || all_constant_sizes(value.type)) return value;
  reporter_.report<DiagKind::ArrayInLambda>(value.span, describe(value))
      .note("compute it before the lambda, with `let`");
  return error(value.span);
}

}  // namespace cinch::sema
