// Makes and reads array types, and compares sizes. Sizes are host expressions of the program's
// pool. Two sizes agree if they are equal as polynomials; any other operation in them is an atom of
// the polynomial.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/ir/ir.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::ir {

inline Type scalar_type(DType dtype) {
  return Type{dtype, 0, {}};
}
inline Type vector_type(DType dtype, HostExprId size) {
  return Type{dtype, 1, {size, {}}};
}
inline Type matrix_type(DType dtype, HostExprId rows, HostExprId cols) {
  return Type{dtype, 2, {rows, cols}};
}
/// The same shape with another element type.
inline Type with_dtype(Type type, DType dtype) {
  type.dtype = dtype;
  return type;
}
inline bool is_scalar(const Type& type) {
  return type.rank == 0;
}

/// True if the formulas are equal for every input: by id, or as polynomials. In a matrix program n
/// counts as r * c; in others r counts as n and c as 1.
bool sizes_agree(const rt::ProgramInfo& info, HostExprId a, HostExprId b);
/// True if ranks are equal and all sizes agree.
bool shapes_agree(const rt::ProgramInfo& info, const Type& a, const Type& b);
/// shapes_agree, and the same element type.
bool types_agree(const rt::ProgramInfo& info, const Type& a, const Type& b);
/// True if the products of all sizes agree.
bool element_counts_agree(const rt::ProgramInfo& info, const Type& a, const Type& b);

/// The size, if it is a constant.
std::optional<std::int64_t> constant_size(const HostExprPool& exprs, HostExprId size);
/// The shape that element-wise operators make of two operands, or nothing if they do not fit.
/// Scalars and the constant size 1 broadcast; ranks of arrays must be equal. Keeps a's dtype.
std::optional<Type> broadcast_shape(const rt::ProgramInfo& info, const Type& a, const Type& b);

/// Number of elements as a host expression (adds nodes to the pool).
HostExprId element_count(HostExprPool& exprs, const Type& type);

}  // namespace cinch::ir
