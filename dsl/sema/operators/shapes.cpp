// Broadcasting, rows, and reshapes of values.
#include "dsl/sema/operators/operators.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

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

// A vector beside a matrix becomes a row of it, which is repeated.
Type Shapes::with_rank_of(const Type& type, const Type& other) {
  if (type.rank != 1 || other.rank != 2 || is_by_rows()) return type;
  return matrix_type(type.dtype, pool().const_int(1), type.dims[0]);
}

// The common shape of two, if each dimension agrees or is 1.
std::optional<Type> Shapes::joined(const Type& a, const Type& b) {
  const Type other = with_rank_of(b, a);
  Type shape = with_rank_of(a, b);
  if (shape.rank != other.rank) return std::nullopt;
  for (int i = 0; i < shape.rank; ++i) {
    if (sizes_.is_one(other.dims[i]) || prover_.proves_equal(other.dims[i], shape.dims[i])) {
      continue;
    }
    if (!sizes_.is_one(shape.dims[i])) return std::nullopt;
    shape.dims[i] = other.dims[i];
  }
  return shape;
}

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
    const auto both = joined(shape, type);
    if (!both) {
      all_.scalars.cannot_combine(name, *shaped, arg, span);
      return std::nullopt;
    }
    shape = *both;
  }
  return shape;
}

// The numbers of elements are known to agree.
Value Shapes::reshaped(const Value& value, const Type& type, Span span) {
  if (value.is_error() || sizes_.same_shape(value.type, type)) return value;
  Type shape = type;
  shape.dtype = value.type.dtype;
  return build_.builtin(BuiltinId::reshape, shape, {value.expr}, span);
}

Value Shapes::repeated(const Value& value, const Type& shape, Span span) {
  if (value.is_error() || sizes_.same_shape(value.type, shape)) return value;
  Type type = shape;
  type.dtype = value.type.dtype;
  return build_.builtin(BuiltinId::fill, type, {as_row(value, shape).expr}, span);
}

}  // namespace cinch::sema
