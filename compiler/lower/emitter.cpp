// Appending operators to a function; see emitter.h.
#include "compiler/lower/emitter.h"

#include <bit>
#include <utility>

#include "runtime/core/check.h"

namespace cinch::lower {

Type scalar_type(DType dtype) { return Type{dtype, 0, {}}; }
Type vector_type(DType dtype, HostExprId len) { return Type{dtype, 1, {len, {}}}; }
Type matrix_type(DType dtype, HostExprId rows, HostExprId cols) {
  return Type{dtype, 2, {rows, cols}};
}
Type with_dtype(Type type, DType dtype) {
  type.dtype = dtype;
  return type;
}
bool same_shape(const Type& a, const Type& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

Emitter::Emitter(ir::Function& function, HostExprPool& pool) : function_(function), pool_(pool) {
  function_.body = open_region();
}

void Emitter::finish() {
  close_region({});
  CINCH_CHECK(open_.empty(), "a region is left open");
}

ValueId Emitter::emit(OpKind kind, std::vector<ValueId> operands, Type type, ir::Attrs attrs) {
  return emit_multi(kind, std::move(operands), {type}, std::move(attrs))[0];
}

std::vector<ValueId> Emitter::emit_multi(OpKind kind, std::vector<ValueId> operands,
                                         const std::vector<Type>& types, ir::Attrs attrs,
                                         std::vector<RegionId> regions) {
  for (ValueId operand : operands) CINCH_CHECK(operand.is_valid(), "an operand has no value");
  const ir::OpId id(function_.ops.size());
  ir::Op op{kind, std::move(operands), {}, std::move(regions), std::move(attrs), span};
  for (const Type& type : types) {
    op.results.push_back(ValueId(function_.values.size()));
    const auto result_index = static_cast<std::uint32_t>(op.results.size() - 1);
    function_.values.push_back(ir::Value{type, id, result_index, {}});
  }
  std::vector<ValueId> results = op.results;
  function_.ops.push_back(std::move(op));
  function_.regions[open_.back().index()].ops.push_back(id);
  return results;
}

void Emitter::emit_check(OpKind kind, std::vector<ValueId> operands, ir::Attrs attrs) {
  emit_multi(kind, std::move(operands), {}, std::move(attrs));
}

RegionId Emitter::open_region() {
  const RegionId id(function_.regions.size());
  function_.regions.emplace_back();
  open_.push_back(id);
  return id;
}

ValueId Emitter::add_region_arg(Type type) {
  ir::Attrs attrs;
  attrs.index = static_cast<std::uint32_t>(function_.regions[open_.back().index()].args.size());
  const ValueId arg = emit(OpKind::arg, {}, type, attrs);
  function_.regions[open_.back().index()].args.push_back(arg);
  return arg;
}

void Emitter::close_region(std::vector<ValueId> yields) {
  emit_multi(OpKind::yield, std::move(yields), {});
  open_.pop_back();
}

ir::CombinerId Emitter::add_combiner(ir::Combiner combiner) {
  function_.combiners.push_back(combiner);
  return ir::CombinerId(function_.combiners.size() - 1);
}

void Emitter::name(ValueId value, const std::string& name) {
  std::string& known = function_.values[value.index()].name;
  if (known.empty()) known = name;
}

ValueId Emitter::constant(DType dtype, std::int64_t value) {
  if (is_float(dtype)) return constant_f64(dtype, static_cast<double>(value));
  ir::Attrs attrs;
  attrs.bits = static_cast<std::uint64_t>(value);
  return emit(OpKind::const_scalar, {}, scalar_type(dtype), attrs);
}

ValueId Emitter::constant_f64(DType float_dtype, double value) {
  ir::Attrs attrs;
  attrs.bits = std::bit_cast<std::uint64_t>(value);
  return emit(OpKind::const_scalar, {}, scalar_type(float_dtype), attrs);
}

ValueId Emitter::host_size(HostExprId size, DType dtype) {
  ir::Attrs attrs;
  attrs.size = size;
  return emit(OpKind::host_size, {}, scalar_type(dtype), attrs);
}

bool Emitter::is_one(HostExprId size) const {
  return pool_.is_const(size) && pool_.type(size) == HostType::Int &&
         pool_.const_value(size).as_int() == 1;
}

// Scalars take part in anything; of two sizes the one that is not the constant 1 stands.
Type Emitter::broadcast_type(const std::vector<ValueId>& operands) const {
  Type result = scalar_type(kF32);
  for (ValueId operand : operands) {
    const Type& t = type(operand);
    if (t.rank == 0) continue;
    if (result.rank == 0) {
      result = t;
      continue;
    }
    CINCH_CHECK(result.rank == t.rank, "operands of different ranks");
    for (int i = 0; i < t.rank; ++i) {
      if (is_one(result.dims[i])) result.dims[i] = t.dims[i];
    }
  }
  return result;
}

ValueId Emitter::map_to(ScalarOp op, std::vector<ValueId> operands, Type type) {
  ir::Attrs attrs;
  attrs.scalar_op = op;
  return emit(OpKind::map, std::move(operands), type, attrs);
}

namespace {

DType result_dtype(ScalarOp op, DType last_operand) {
  switch (scalar_op_info(op).result) {
    case ScalarResult::Bool:
      return kBool;
    case ScalarResult::U32:
      return kU32;
    case ScalarResult::Same:
      break;
  }
  return last_operand;
}

}  // namespace

ValueId Emitter::map(ScalarOp op, ValueId a) {
  return map_to(op, {a}, with_dtype(type(a), result_dtype(op, dtype(a))));
}

ValueId Emitter::map(ScalarOp op, ValueId a, ValueId b) {
  const Type shape = broadcast_type({a, b});
  return map_to(op, {a, b}, with_dtype(shape, result_dtype(op, dtype(b))));
}

ValueId Emitter::map(ScalarOp op, ValueId a, ValueId b, ValueId c) {
  const Type shape = broadcast_type({a, b, c});
  return map_to(op, {a, b, c}, with_dtype(shape, result_dtype(op, dtype(c))));
}

ValueId Emitter::convert(ValueId value, DType dtype) {
  const Type from = type(value);
  if (from.dtype == dtype) return value;
  return emit(OpKind::convert, {value}, with_dtype(from, dtype));
}

ValueId Emitter::reshape(ValueId value, Type shape) {
  const Type from = type(value);
  if (same_shape(from, shape)) return value;
  return emit(OpKind::reshape, {value}, with_dtype(shape, from.dtype));
}

// Sizes that differ as ids were proved equal by sema, unless one is the constant 1.
bool Emitter::must_repeat(const Type& from, const Type& to) const {
  if (from.rank != to.rank) return true;
  for (int i = 0; i < from.rank; ++i) {
    if (from.dims[i] != to.dims[i] && is_one(from.dims[i])) return true;
  }
  return false;
}

ValueId Emitter::broadcast(ValueId value, Type shape) {
  const Type from = type(value);
  if (!must_repeat(from, shape)) return value;
  CINCH_CHECK(shape.rank > 0, "an array cannot become a scalar");
  if (from.rank == 1 && shape.rank == 1) {  // [1]: its element is the scalar to repeat
    value = gather(value, constant(kU32, 0), scalar_type(from.dtype));
  } else if (from.rank == 1) {
    value = reshape(value, matrix_type(from.dtype, one(), from.dims[0]));
    if (!must_repeat(type(value), shape)) return value;
  }
  return emit(OpKind::fill, {value}, with_dtype(shape, from.dtype));
}

ValueId Emitter::fit(ValueId value, const Type& type) {
  return broadcast(convert(value, type.dtype), type);
}

ValueId Emitter::gather(ValueId array, ValueId index, Type type) {
  return emit(OpKind::gather, {array, index}, type);
}

ValueId Emitter::iota(HostExprId len) { return emit(OpKind::iota, {}, vector_type(kU32, len)); }

}  // namespace cinch::lower
