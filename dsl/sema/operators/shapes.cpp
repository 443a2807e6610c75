// Broadcasting, rows, and reshapes of values.
#include "dsl/sema/operators/shapes.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

// A vector beside a matrix of as many columns is a row of it.
bool Shapes::is_row_of(const Type& a, const Type& b) {
  const Type& vector = a.rank == 1 ? a : b;
  const Type& matrix = a.rank == 1 ? b : a;
  return vector.rank == 1 && matrix.rank == 2 && !is_by_rows() &&
         prover_.proves_equal(vector.dims[0], matrix.dims[1]);
}

Value Shapes::as_row(const Value& value, const Type& shape) {
  if (!value.is_typed() || value.type.rank != 1 || shape.rank != 2) return value;
  const HostExprId one = pool().const_int(1);
  return reshaped(value, matrix_type(value.type.dtype, one, value.type.dims[0]), value.span);
}

// The shape that operands of these shapes give together.
std::optional<Type> Shapes::broadcast(std::span<const Value> args, Span span,
                                      std::string_view name) {
  Type shape = scalar_type(kF32);
  const Value* shaped = nullptr;
  for (const Value& arg : args) {
    const Type type = types_.value_type(arg);
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
      if (prover_.proves_equal(type.dims[i], shape.dims[i]) || sizes_.is_one(type.dims[i]))
        continue;
      if (sizes_.is_one(shape.dims[i])) {
        shape.dims[i] = type.dims[i];
      } else {
        fits = false;
      }
    }
    if (!fits) {
      all_.scalars.cannot_combine(name, *shaped, arg, span);
      return std::nullopt;
    }
  }
  return shape;
}

// The same elements in another shape; the numbers of elements are known to agree.
Value Shapes::reshaped(const Value& value, const Type& type, Span span) {
  if (value.is_error() || sizes_.same_shape(value.type, type)) return value;
  Type shape = type;
  shape.dtype = value.type.dtype;
  return build_.builtin(BuiltinId::reshape, shape, {value.expr}, span);
}

}  // namespace cinch::sema
