// map, fill, len and floor_div.
#include "dsl/sema/operators/operators.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value MapOperators::map_call(const CallArgs& args) {
  std::vector<Value> arrays;
  std::vector<Type> params;
  std::vector<ExprId> operands;
  for (std::size_t i = 0; i + 1 < args.positional.size(); ++i) {
    arrays.push_back(all_.arguments.operand(args.positional[i]));
    if (arrays.back().is_error()) return error_value(args.span);
    params.push_back(scalar_type(arrays.back().type.dtype));
  }
  const auto shape = all_.shapes.broadcast(arrays, args.span, "map");
  if (!shape) return error_value(args.span);
  operands.reserve(arrays.size() + 1);
  for (const Value& array : arrays) operands.push_back(all_.shapes.as_row(array, *shape).expr);
  const Value body =
      all_.exprs.lambda(args.positional.back(), params, args.name,
                        [&](const Value& value) { return conversions_.unmet(value); });
  if (body.is_error()) return error_value(args.span);
  operands.push_back(body.expr);
  Type type = *shape;
  type.dtype = body.type.dtype;
  return build_.builtin(BuiltinId::map, type, std::move(operands), args.span);
}

Value MapOperators::fill_call(const CallArgs& args) {
  const Value value = all_.exprs.expr(args.positional[0]);
  if (value.is_error()) return error_value(args.span);
  const bool takes_shape = args.positional.size() == 1 && mode_.wanted != nullptr;
  if (args.positional.size() == 1 && !takes_shape) {
    reporter_.report<DiagKind::MissingArgument>(args.span, "fill", "a size");
    return error_value(args.span);
  }
  Value v =
      takes_shape ? conversions_.coerce(value, mode_.wanted->dtype) : conversions_.unmet(value);
  if (v.is_error()) return v;
  if (!v.is_typed() || v.type.rank != 0) {
    reporter_.report<DiagKind::BadType>(value.span, "a number to repeat", text_.describe(value));
    return error_value(args.span);
  }
  if (takes_shape) return build_.builtin(BuiltinId::fill, *mode_.wanted, {v.expr}, args.span);
  const auto size = all_.arguments.size_arg(args.positional[1], args.name);
  if (!size) return error_value(args.span);
  return build_.builtin(BuiltinId::fill, vector_type(v.type.dtype, *size), {v.expr}, args.span,
                        [&](Expr& e) { e.size = *size; });
}

// The number of elements of a vector, or of rows of a matrix.
Value MapOperators::len_call(const CallArgs& args) {
  Value x = all_.exprs.expr(args.positional[0]);
  if (x.is_error()) return x;
  const Type type = types_.value_type(x);
  const bool is_array = (x.is_typed() || x.kind == ValueKind::Table) && type.rank > 0;
  if (!is_array) {
    reporter_.report<DiagKind::CannotApply>(x.span, "len", text_.describe(x))
        .note("it takes an array");
    return error_value(args.span);
  }
  // The number may be used without the array, but the array has to be computed for it.
  if (build_.holds_filter(x)) build_.shared(x, "counted");
  return host_value(type.dims[0], args.span);
}

// Computes the quotient rounded down from the quotient rounded toward zero and the remainder.
Value MapOperators::floor_div_call(const CallArgs& args) {
  const Span span = args.span;
  const Value a = all_.exact.without_quotient(all_.exprs.expr(args.positional[0]));
  const Value b = all_.exact.without_quotient(all_.exprs.expr(args.positional[1]));
  if (a.is_error() || b.is_error()) return error_value(span);
  Value result = all_.exact.floor_div_of(a, b, args.name, span);
  const bool is_made = result.is_typed() && !result.is_exact && is_int(result.type.dtype);
  if (!is_made || !types_.stays_adaptable(ScalarOp::div, std::vector{a, b})) return result;
  Remake made{{}, false, true, true};
  made.in_type = [this, a, b, name = args.name, result, span](DType to) {
    if (!is_int(to)) return conversions_.convert(result, to, span);
    const DType type = arithmetic_type(to);
    return conversions_.convert(all_.exact.floor_div_of(conversions_.coerce(a, type),
                                                        conversions_.coerce(b, type), name, span),
                                to, span);
  };
  result.remake = std::make_shared<const Remake>(std::move(made));
  return result;
}

}  // namespace cinch::sema
