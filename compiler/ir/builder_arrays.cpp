// Builder: the array operators and the types of their results.
#include <bit>
#include <limits>

#include "compiler/ir/builder.h"
#include "runtime/core/check.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::ir {

// Generators.

ValueId Builder::iota(HostExprId size) {
  return add_one(OpKind::iota, {}, vector_type(kU32, size));
}

ValueId Builder::fill(ValueId value, Type shape) {
  const Type result = with_dtype(shape, dtype(value));
  if (types_agree(program().info, type(value), result)) return value;
  return add_one(OpKind::fill, {value}, result);
}

ValueId Builder::draw(OpKind kind, Type shape, DrawSite site, ValueId iteration) {
  CINCH_CHECK(is_draw(kind), "not a draw");
  Attrs attrs{.draw = site};
  const DType dtype = kind == OpKind::random_bits ? kU32 : kF32;
  return add_one(kind, iteration.is_valid() ? ValueIds{iteration} : ValueIds{},
                 with_dtype(shape, dtype), attrs);
}

ValueId Builder::random_index(HostExprId num, HostExprId below, DrawSite site, ValueId iteration) {
  return add_one(OpKind::random_index, iteration.is_valid() ? ValueIds{iteration} : ValueIds{},
                 vector_type(kU32, num), {.size = below, .draw = site});
}

// Element-wise.

ValueId Builder::map(ScalarOp op, ValueId a) {
  return map(op, ValueIds{a});
}
ValueId Builder::map(ScalarOp op, ValueId a, ValueId b) {
  return map(op, ValueIds{a, b});
}
ValueId Builder::map(ScalarOp op, ValueId a, ValueId b, ValueId c) {
  return map(op, ValueIds{a, b, c});
}

ValueId Builder::map(ScalarOp op, ValueIds operands) {
  Type shape = type(operands.front());
  for (ValueId operand : operands) {
    const std::optional<Type> met = broadcast_shape(program().info, shape, type(operand));
    CINCH_CHECK(met.has_value(), "operands of map do not meet");
    shape = *met;
  }
  DType result = dtype(operands.back());
  if (scalar_op_info(op).result == ScalarResult::Bool) result = kBool;
  if (scalar_op_info(op).result == ScalarResult::U32) result = kU32;
  return add_one(OpKind::map, std::move(operands), with_dtype(shape, result), {.scalar_op = op});
}

ValueId Builder::convert(ValueId value, DType dtype) {
  if (this->dtype(value) == dtype) return value;
  return add_one(OpKind::convert, {value}, with_dtype(type(value), dtype));
}

ValueId Builder::bitcast(ValueId value, DType dtype) {
  return add_one(OpKind::bitcast, {value}, with_dtype(type(value), dtype));
}

ValueId Builder::stochastic_round(ValueId value, DrawSite site, ValueId iteration) {
  Attrs attrs{.draw = site};
  ValueIds operands{value};
  if (iteration.is_valid()) operands.push_back(iteration);
  return add_one(OpKind::stochastic_round, std::move(operands), type(value), attrs);
}

// Access.

ValueId Builder::gather(ValueId x, ValueId index) {
  const Type& array = type(x);
  const Type& at = type(index);
  Type result = scalar_type(array.dtype);
  for (int d = 0; d < at.rank; ++d) result.dims[result.rank++] = at.dims[d];
  for (int d = 1; d < array.rank; ++d) {
    CINCH_CHECK(result.rank < 2, "gather of rows takes a scalar or a vector of indices");
    result.dims[result.rank++] = array.dims[d];
  }
  return add_one(OpKind::gather, {x, index}, result);
}

ValueId Builder::gather_along(ValueId x, ValueId index, std::int8_t axis) {
  return add_one(OpKind::gather_along, {x, index}, with_dtype(type(index), dtype(x)),
                 {.axis = axis});
}

ValueId Builder::slice(ValueId x, HostExprId begin, HostExprId length) {
  Attrs attrs{.size = begin};
  Type result = type(x);
  result.dims[0] = length;
  return add_one(OpKind::slice, {x}, result, attrs);
}

ValueId Builder::concat(ValueIds parts, std::int8_t axis) {
  Type result = type(parts.front());
  const int line = axis == 1 ? 1 : 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    result.dims[line] = exprs().add(result.dims[line], type(parts[i]).dims[line]);
  }
  return parts.size() == 1 ? parts.front()
                           : add_one(OpKind::concat, std::move(parts), result, {.axis = axis});
}

ValueId Builder::reshape(ValueId x, Type shape, bool proved) {
  const Type result = with_dtype(shape, dtype(x));
  if (types_agree(program().info, type(x), result)) return x;
  return add_one(OpKind::reshape, {x}, result, {.proved = proved});
}

ValueId Builder::transpose(ValueId x) {
  const Type& t = type(x);
  return add_one(OpKind::transpose, {x}, matrix_type(t.dtype, t.dims[1], t.dims[0]));
}

ValueId Builder::chunk(ValueId x, HostExprId width) {
  const Type t = type(x);
  const HostExprId rows = exprs().ceil_div(t.dims[0], width);
  return add_one(OpKind::chunk, {x}, matrix_type(t.dtype, rows, width));
}

ValueId Builder::unchunk(ValueId x, HostExprId size) {
  return add_one(OpKind::unchunk, {x}, vector_type(dtype(x), size));
}

ValueId Builder::pack(ValueId x, int bits) {
  Attrs attrs{.bits = static_cast<std::uint64_t>(bits)};
  const HostExprId total = exprs().mul(element_count(exprs(), type(x)), exprs().const_int(bits));
  return add_one(OpKind::pack, {x}, vector_type(kU8, exprs().ceil_div(total, exprs().const_int(8))),
                 attrs);
}

ValueId Builder::unpack(ValueId bytes, int bits, HostExprId size) {
  Attrs attrs{.bits = static_cast<std::uint64_t>(bits)};
  const std::optional<DType> dtype = make_uint(bits);
  CINCH_CHECK(dtype.has_value(), "unpack: bits outside 1..64");
  return add_one(OpKind::unpack, {bytes}, vector_type(*dtype, size), attrs);
}

// Reductions and scans.

ValueId Builder::keep(ValueId x) {
  return add_one(OpKind::keep, {x}, type(x));
}

ValueId Builder::identity(ScalarOp op, DType dtype) {
  return constant_bits(dtype, identity_constant(op, dtype));
}

ValueIds Builder::reduce(ValueIds values, ValueIds inits, CombinerId combiner, std::int8_t axis,
                         ValueId mask) {
  Attrs attrs{.axis = axis, .combiner = combiner};
  std::vector<Type> types;
  for (ValueId value : values) {
    Type result = type(value);
    if (axis == kAll) {
      result = scalar_type(result.dtype);
    } else {
      result.dims[axis] = exprs().const_int(1);
    }
    types.push_back(result);
  }
  ValueIds operands = values;
  operands.insert(operands.end(), inits.begin(), inits.end());
  if (mask.is_valid()) operands.push_back(fill(mask, type(values.front())));
  const OpId op = add(OpKind::reduce, std::move(operands), std::move(types), attrs);
  return function().ops[op.index()].results;
}

ValueId Builder::reduce(ScalarOp op, ValueId x, std::int8_t axis, ValueId mask) {
  const ValueId init = identity(op, dtype(x));
  return reduce(ValueIds{x}, ValueIds{init}, combiner(op), axis, mask).front();
}

ValueIds Builder::scan(ValueIds values, ValueIds inits, CombinerId combiner, std::int8_t axis,
                       bool exclusive) {
  Attrs attrs{.axis = axis, .exclusive = exclusive, .combiner = combiner};
  std::vector<Type> types = types_of(values);
  ValueIds operands = values;
  operands.insert(operands.end(), inits.begin(), inits.end());
  const OpId op = add(OpKind::scan, std::move(operands), std::move(types), attrs);
  return function().ops[op.index()].results;
}

ValueId Builder::scan(ScalarOp op, ValueId x, std::int8_t axis, bool exclusive) {
  const ValueId init = identity(op, dtype(x));
  return scan(ValueIds{x}, ValueIds{init}, combiner(op), axis, exclusive).front();
}

// Selection.

std::uint32_t Builder::new_count(std::string name, HostExprId bound) {
  program().info.counts.push_back({std::move(name), bound});
  return static_cast<std::uint32_t>(program().info.counts.size() - 1);
}

Builder::Nonzero Builder::nonzero(ValueId mask, std::uint32_t count_index, HostExprId limit) {
  Attrs attrs{.index = count_index, .size = limit, .has_limit = limit.is_valid()};
  const HostExprId bound = program().info.counts[count_index].bound;
  const Type index = vector_type(kU32, exprs().count(count_index, bound));
  const OpId op = add(OpKind::nonzero, {mask}, {index, scalar_type(kU32)}, attrs);
  return {result(op, 0), result(op, 1)};
}

ValueId Builder::top_k(ValueId x, HostExprId k, std::int8_t axis) {
  Attrs attrs{.size = k, .axis = axis};
  const Type& t = type(x);
  return add_one(OpKind::top_k, {x},
                 axis == kAll ? vector_type(kU32, k) : matrix_type(kU32, t.dims[0], k), attrs);
}

ValueId Builder::kth_largest(ValueId x, HostExprId k, std::int8_t axis) {
  Attrs attrs{.size = k, .axis = axis};
  const Type t = type(x);
  return add_one(
      OpKind::kth_largest, {x},
      axis == kAll ? scalar_type(t.dtype) : matrix_type(t.dtype, t.dims[0], exprs().const_int(1)),
      attrs);
}

ValueId Builder::argsort(ValueId x, bool descending, std::int8_t axis) {
  return add_one(OpKind::argsort, {x}, with_dtype(type(x), kU32),
                 {.axis = axis, .descending = descending});
}

// Stores.

// A value for each index: repeats a scalar to the shape of x[index].
ValueId Builder::spread(ValueId base, ValueId index, ValueId values) {
  Type shape = type(index);
  if (type(base).rank == 2) shape.dims[shape.rank++] = type(base).dims[1];
  return fill(values, shape);
}

ValueId Builder::scatter(ValueId base, ValueId index, ValueId values) {
  return add_one(OpKind::scatter, {base, index, spread(base, index, values)}, type(base));
}

ValueId Builder::scatter_add(ValueId index, ValueId values, HostExprId size, bool ascends) {
  Attrs attrs{.proved = ascends};
  const ValueId each = fill(values, type(index));
  return add_one(OpKind::scatter_add, {index, each}, vector_type(dtype(values), size), attrs);
}

ValueId Builder::scatter_reduce(ScalarOp op, ValueId index, ValueId values, HostExprId size,
                                bool in_rows) {
  Attrs attrs{.scalar_op = op, .in_rows = in_rows};
  const ValueId each = fill(values, type(index));
  return add_one(OpKind::scatter_reduce, {index, each}, vector_type(dtype(values), size), attrs);
}

ValueId Builder::histogram(ValueId values, HostExprId bins, ValueId mask) {
  ValueIds operands{values};
  if (mask.is_valid()) operands.push_back(fill(mask, type(values)));
  return add_one(OpKind::histogram, std::move(operands), vector_type(kU32, bins));
}

// Matrix.

ValueId Builder::matmul(ValueId a, ValueId b) {
  return add_one(OpKind::matmul, {a, b}, matrix_type(dtype(a), type(a).dims[0], type(b).dims[1]));
}

ValueId Builder::orthonormalize(ValueId x) {
  return add_one(OpKind::orthonormalize, {x}, type(x));
}

ValueId Builder::butterflies(ValueId x) {
  return add_one(OpKind::butterflies, {x}, type(x));
}

ValueId Builder::list_marked(ValueId marks, HostExprId k) {
  return add_one(OpKind::list_marked, {marks}, matrix_type(kU32, type(marks).dims[0], k),
                 {.size = k});
}

ValueId Builder::mark_largest(ValueId keys, ValueId k) {
  return add_one(OpKind::mark_largest, {keys, k}, type(keys));
}

ValueId Builder::hadamard(ValueId x) {
  return add_one(OpKind::hadamard, {x}, type(x));
}

// Collectives.

ValueId Builder::all_reduce(ValueId x, ScalarOp op, bool mean) {
  return add_one(OpKind::all_reduce, {x}, type(x), {.mean = mean, .combiner = combiner(op)});
}

ValueId Builder::all_gather(ValueId x) {
  return add_one(OpKind::all_gather, {x}, matrix_type(dtype(x), exprs().world(), type(x).dims[0]));
}

ValueId Builder::all_to_all(ValueId x, HostExprId group, HostExprId stride) {
  return add_one(OpKind::all_to_all, {x}, type(x), {.size = group, .size2 = stride});
}

ValueId Builder::reduce_scatter(ValueId x, ScalarOp op) {
  return add_one(OpKind::reduce_scatter, {x}, vector_type(dtype(x), type(x).dims[1]),
                 {.combiner = combiner(op)});
}

ValueId Builder::broadcast(ValueId x, std::uint32_t root) {
  return add_one(OpKind::broadcast, {x}, type(x), {.index = root});
}

ValueId Builder::broadcast_from(ValueId x, ValueId root, std::string text) {
  return add_one(OpKind::broadcast_from, {x, root}, type(x), {.text = std::move(text)});
}

ValueId Builder::send_receive(ValueId x, ValueId to, std::string text) {
  return add_one(OpKind::send_receive, {x, to}, type(x), {.text = std::move(text)});
}

}  // namespace cinch::ir
