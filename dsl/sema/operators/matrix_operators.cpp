// `@`, orthonormalize and hadamard.
#include "dsl/sema/operators/operators.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value MatrixOperators::matmul(const Value& a_in, const Value& b_in, Span span) {
  const std::vector<Value> sides = conversions_.unmet_together({a_in, b_in});
  Value a = conversions_.materialize(sides[0]), b = conversions_.materialize(sides[1]);
  for (const Value* side : {&a, &b}) {
    if (side->is_error()) return error_value(span);
    if (!side->is_typed() || side->type.rank != 2) {
      auto& diag = reporter_.report<DiagKind::NeedsMatrix>(side->span, "@", text_.describe(*side));
      if (side->is_typed() && side->type.rank == 1) {
        diag.note(
            "a vector beside it is a row or a column: `reshape(v, 1, len(v))`, "
            "`reshape(v, len(v), 1)`; `dot(m, v, axis: 1)` multiplies each row by v");
      }
      return error_value(span);
    }
    if (all_.arguments.check_lambda_array(*side).is_error()) return error_value(span);
  }
  const auto dtype = types_.meet(a, b);
  if (!dtype || !prover_.proves_equal(a.type.dims[1], b.type.dims[0])) {
    return all_.scalars.cannot_combine("@", a, b, span);
  }
  if (!all_.reductions.is_known_line(a, 1, "@")) return error_value(span);
  a = conversions_.coerce(a, *dtype);
  b = conversions_.coerce(b, *dtype);
  return build_.builtin(BuiltinId::matmul, matrix_type(*dtype, a.type.dims[0], b.type.dims[1]),
                        {a.expr, b.expr}, span);
}

Value MatrixOperators::matrix_call(BuiltinId id, const CallArgs& args) {
  const bool is_hadamard = id == BuiltinId::hadamard;
  Value x = is_hadamard ? all_.arguments.array_operand(args.positional[0], args.name)
                        : all_.arguments.matrix_operand(args.positional[0], args.name);
  if (x.is_error()) return x;
  x = conversions_.as_float(x, args.name);
  if (x.is_error()) return x;
  const Type type = x.type;
  if (!is_hadamard) {
    const bool is_known = all_.reductions.is_known_line(x, 0, args.name) &&
                          all_.reductions.is_known_line(x, 1, args.name);
    if (!is_known) return error_value(args.span);
    return build_.builtin(id, type, {x.expr}, args.span);
  }
  if (!all_.reductions.is_known_line(x, type.rank - 1, args.name)) return error_value(args.span);
  const HostExprId len = type.dims[type.rank - 1];
  const HostExprId one = pool().const_int(1), zero = pool().const_int(0);
  const HostExprId low_bits = pool().make(HostOp::BitAnd, len, pool().sub(len, one));
  const HostExprId is_power = pool().make(HostOp::And, pool().make(HostOp::Gt, len, zero),
                                          pool().make(HostOp::Eq, low_bits, zero));
  build_.require(
      is_power, "the length " + sizes_.size_text(len) + " of a row of `hadamard` is a power of two",
      args.span);
  if (type.rank == 1) x = all_.shapes.reshaped(x, matrix_type(type.dtype, one, len), args.span);
  return all_.shapes.reshaped(build_.builtin(id, x.type, {x.expr}, args.span), type, args.span);
}

}  // namespace cinch::sema
