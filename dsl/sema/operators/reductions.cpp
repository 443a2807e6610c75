// Reductions and scans.
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/operators/operators.h"
#include "runtime/core/mapped.h"

namespace cinch::sema {
using dsl::DiagKind;

// A reduction along an axis keeps the axis with size 1.
Type Operators::reduced_type(const Type& type, int axis, DType dtype) {
  if (axis < 0) return scalar_type(dtype);
  const HostExprId one = pool().const_int(1);
  return axis == 0 ? matrix_type(dtype, one, type.dims[1]) : matrix_type(dtype, type.dims[0], one);
}

// No kernel has rows of a length that is unknown before launch.
bool Operators::is_known_line(const Value& x, int axis, std::string_view name) {
  if (axis < 0 || !pool().has_count(x.type.dims[axis])) return true;
  return mistake<DiagKind::NotKnownOnHost>(
      x.span, "the length of what `" + std::string(name) + "` runs along");
}

namespace {

enum class ReducedAs : std::uint8_t { Arithmetic, Float, Index, Bools, Count };

ReducedAs reduced_as(BuiltinId id) {
  switch (id) {
    case BuiltinId::mean:
    case BuiltinId::var:
    case BuiltinId::std:
    case BuiltinId::norm2:
      return ReducedAs::Float;
    case BuiltinId::argmin:
    case BuiltinId::argmax:
      return ReducedAs::Index;
    case BuiltinId::any:
    case BuiltinId::all:
      return ReducedAs::Bools;
    case BuiltinId::count:
      return ReducedAs::Count;
    default:
      return ReducedAs::Arithmetic;
  }
}

}  // namespace

Value Operators::reduce_call(const CallArgs& args) {
  Value x = FOUND(all_.calls.array_operand(args.positional[0], args.name));
  const ReducedAs as = reduced_as(args.id);
  if (as == ReducedAs::Bools || as == ReducedAs::Count) {
    x = conversions_.bool_value(x, "bools in `" + args.name + "`");
  } else if (as == ReducedAs::Float) {
    x = conversions_.as_float(x, args.name);
  } else {
    x = conversions_.arithmetic(x);
  }
  if (x.is_error()) return error_value(args.span);
  const DType result = as == ReducedAs::Bools                             ? kBool
                       : as == ReducedAs::Count || as == ReducedAs::Index ? kU32
                                                                          : x.type.dtype;
  return reduced(args, {x}, result);
}

Value Operators::dot_call(const CallArgs& args) {
  std::vector<Value> xs = conversions_.unmet_together(
      {all_.exprs.expr(args.positional[0]), all_.exprs.expr(args.positional[1])});
  for (const Value& x : xs) {
    const Value made = all_.calls.operand_of(x);
    if (all_.calls.array_of(made, args.name).is_error()) return error_value(args.span);
  }
  const auto dtype = types_.meet(xs[0], xs[1]);
  if (!dtype) return cannot_combine(args.name, xs[0], xs[1], args.span);
  const auto shape = FOUND(broadcast(xs, args.span, args.name));
  const bool is_mixed = types_.value_type(xs[0]).rank != types_.value_type(xs[1]).rank;
  if (is_mixed && !args.named.contains("axis"))
    return error_value(reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "`axis:`")
                           .note("beside a vector: `axis: 1` gives one product for each row of the "
                                 "matrix; `sum(x * y)` "
                                 "is the sum of all"));
  for (Value& x : xs) {
    x = FOUND(repeated(conversions_.coerce(x, *dtype), shape, args.span));
  }
  return reduced(args, std::move(xs), *dtype);
}

Value Operators::reduced(const CallArgs& args, std::vector<Value> xs, DType result) {
  const auto along = all_.calls.axis(args, xs[0]);
  const auto where = all_.calls.mask(args, xs[0].type);
  if (!along || !where || !is_known_line(xs[0], *along, args.name)) return error_value(args.span);
  auto operands = mapped<ExprId>(xs, &Value::expr);
  operands.push_back(where->expr);
  return build_.builtin(args.id, reduced_type(xs[0].type, *along, result), std::move(operands),
                        args.span, [&](Expr& e) { e.axis = static_cast<std::int8_t>(*along); });
}

namespace {

std::string what_is_no_scalar(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::Table:
      return "an array";
    case ExprKind::Builtin:
      return "`" + std::string(builtin_info(expr.builtin).name) + "`";
    case ExprKind::Index:
    case ExprKind::Slice:
      return "an element of an array";
    default:
      return {};
  }
}

std::string what_is_no_scalar(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::For:
    case StmtKind::While:
      return "a loop";
    case StmtKind::Assert:
    case StmtKind::CheckHost:
      return "a check";
    case StmtKind::AssignIndexed:
      return "an array";
    default:
      return {};
  }
}

}  // namespace

// Do all nodes from these numbers on have only scalars? A kernel combines elements within one step,
// where it has no arrays.
bool Operators::joins_scalars(std::size_t first_expr, std::size_t first_stmt) {
  const auto refuse = [&](const std::string& what, Span span) {
    reporter_.report<DiagKind::NotInLambda>(span, what)
        .note(
            "a lambda over pairs is made of numbers: compute arrays and what is read of them "
            "before it, with `let`");
    return false;
  };
  for (std::size_t i = first_expr; i < out_.exprs.size(); ++i) {
    const Expr& expr = out_.exprs[i];
    if (const auto what = what_is_no_scalar(expr); !what.empty()) return refuse(what, expr.span);
  }
  for (std::size_t i = first_stmt; i < out_.stmts.size(); ++i) {
    const Stmt& stmt = out_.stmts[i];
    if (const auto what = what_is_no_scalar(stmt); !what.empty()) return refuse(what, stmt.span);
  }
  return true;
}

// The first value and the lambda of `reduce` and `scan`, in the type of the elements.
std::optional<std::pair<Value, Value>> Operators::lambda_pair(const CallArgs& args, const Value& x,
                                                              Value& init) {
  const auto own = types_.own_dtype(init);
  const auto met = own ? common_arithmetic_type(*own, x.type.dtype) : types_.meet(init, x);
  if (!met) {
    cannot_combine(args.name, x, init, args.span);
    return std::nullopt;
  }
  const bool stays_bool = x.type.dtype == kBool && own == kBool;
  const DType type = stays_bool ? kBool : *met;
  init = conversions_.coerce(init, type);
  const Value array = conversions_.coerce(x, type);
  if (init.is_error() || array.is_error()) return std::nullopt;
  if (init.type.rank != 0)
    return mistake<DiagKind::BadType>(init.span, "a number to begin with", text_.describe(init));
  const std::size_t first_expr = out_.exprs.size(), first_stmt = out_.stmts.size();
  const Value joined =
      all_.exprs.lambda(args.positional[2], {scalar_type(type), scalar_type(type)}, args.name,
                        [&](const Value& value) { return conversions_.coerce(value, type); });
  if (joined.is_error() || !joins_scalars(first_expr, first_stmt)) return std::nullopt;
  return std::pair(array, joined);
}

Value Operators::reduce_lambda_call(const CallArgs& args) {
  const Value x = all_.calls.array_operand(args.positional[0], args.name);
  Value init = all_.exprs.expr(args.positional[1]);
  if (x.is_error() || init.is_error()) return error_value(args.span);
  const auto along = all_.calls.axis(args, x);
  const auto where = all_.calls.mask(args, x.type);
  if (!along || !where || !is_known_line(x, *along, args.name)) return error_value(args.span);
  const auto pair = FOUND(lambda_pair(args, x, init));
  return build_.builtin(BuiltinId::reduce, reduced_type(x.type, *along, pair.first.type.dtype),
                        {pair.first.expr, init.expr, pair.second.expr, where->expr}, args.span,
                        [&](Expr& e) { e.axis = static_cast<std::int8_t>(*along); });
}

Value Operators::scan_call(const CallArgs& args) {
  Value x = FOUND(all_.calls.array_operand(args.positional[0], args.name));
  const auto along = FOUND(all_.calls.line_axis(args, x));
  std::vector<ExprId> operands;
  if (args.id != BuiltinId::scan) {
    x = conversions_.arithmetic(x);
    operands = {x.expr};
  } else {
    Value init = FOUND(all_.exprs.expr(args.positional[1]));
    const auto pair = FOUND(lambda_pair(args, x, init));
    x = pair.first;
    operands = {x.expr, init.expr, pair.second.expr};
  }
  const bool is_exclusive = all_.calls.flag(args, "exclusive");
  return build_.builtin(args.id, x.type, std::move(operands), args.span, [&](Expr& e) {
    e.axis = static_cast<std::int8_t>(along);
    e.exclusive = is_exclusive;
  });
}

}  // namespace cinch::sema
