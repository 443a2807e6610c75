// What lowering adds to the builder.
#include "compiler/lower/emitter.h"

#include <utility>

#include "runtime/core/check.h"

namespace cinch::lower {

ValueId Emitter::emit(OpKind kind, std::vector<ValueId> operands, Type type, ir::Attrs attrs) {
  return emit_multi(kind, std::move(operands), {type}, std::move(attrs))[0];
}

std::vector<ValueId> Emitter::emit_multi(OpKind kind, std::vector<ValueId> operands,
                                         std::vector<Type> types, ir::Attrs attrs,
                                         std::vector<RegionId> regions) {
  for (ValueId operand : operands) CINCH_CHECK(operand.is_valid(), "an operand has no value");
  const ir::OpId op =
      add(kind, std::move(operands), std::move(types), std::move(attrs), std::move(regions));
  return function().ops[op.index()].results;
}

RegionId Emitter::open_region() {
  outer_.push_back(region());
  const RegionId inner = new_region();
  set_insertion(inner);
  return inner;
}

void Emitter::close_region(std::vector<ValueId> yields) {
  yield(std::move(yields));
  set_insertion(outer_.back());
  outer_.pop_back();
}

ir::CombinerId Emitter::region_combiner(RegionId region) {
  function().combiners.push_back({std::nullopt, region});
  return ir::CombinerId(function().combiners.size() - 1);
}

void Emitter::name(ValueId value, const std::string& name) {
  if (function().values[value.index()].name.empty()) set_name(value, name);
}

bool Emitter::is_one(HostExprId size) {
  return ir::constant_size(exprs(), size) == 1;
}

bool Emitter::must_repeat(const Type& from, const Type& to) {
  if (from.rank != to.rank) return true;
  for (int i = 0; i < from.rank; ++i) {
    if (from.dims[i] != to.dims[i] && is_one(from.dims[i])) return true;
  }
  return false;
}

ValueId Emitter::spread(ValueId value, const Type& shape) {
  const Type from = type(value);
  if (!must_repeat(from, shape)) return value;
  CINCH_CHECK(shape.rank > 0, "an array cannot become a scalar");
  if (from.rank == 1 && shape.rank == 1) {  // [1]: its element is the scalar to repeat
    value = gather(value, constant_int(kU32, 0));
  } else if (from.rank == 1) {
    value = reshape(value, matrix_type(from.dtype, one(), from.dims[0]));
    if (!must_repeat(type(value), shape)) return value;
  }
  return emit(OpKind::fill, {value}, with_dtype(shape, from.dtype));
}

ValueId Emitter::fit(ValueId value, const Type& type) {
  return spread(convert(value, type.dtype), type);
}

Type Emitter::meet(const std::vector<ValueId>& operands) {
  Type shape = type(operands.front());
  for (ValueId operand : operands) {
    const std::optional<Type> met = ir::broadcast_shape(program().info, shape, type(operand));
    CINCH_CHECK(met.has_value(), "element-wise operands do not meet");
    shape = *met;
  }
  return shape;
}

ValueId Emitter::along(ValueId array, ValueId order, int axis) {
  if (axis == ir::kAll) return gather(array, order);
  return gather_along(array, order, static_cast<std::int8_t>(axis));
}

ValueId Emitter::stored_at(ValueId values, ValueId index, const Type& target) {
  const HostExprId len = type(index).dims[0];
  const Type type = target.rank == 1 ? vector_type(target.dtype, len)
                                     : matrix_type(target.dtype, len, target.dims[1]);
  return fit(values, type);
}

}  // namespace cinch::lower
