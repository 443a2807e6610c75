#include <cmath>
#include <limits>
#include <utility>

#include "compiler/lower/emitter.h"
#include "compiler/lower/parts/expressions.h"
#include "runtime/core/check.h"

namespace cinch::lower {
using sema::BuiltinId;

// The operand of a reduction, lifted: inside a lambda a vector per element is a matrix, reduced
// along its rows.
struct ReduceLowering::Reduction {
  std::vector<ValueId> arrays;
  ValueId mask;
  Type shape;  // of the arrays
  std::int8_t axis = ir::kAll;
  bool is_lifted = false;
};

ReduceLowering::Reduction ReduceLowering::prepare(const Expr& e, const std::vector<ExprId>& arrays,
                                                  ExprId mask) {
  Reduction r;
  std::vector<Lowered> values;
  std::vector<ExprId> exprs = arrays;
  if (mask) exprs.push_back(mask);
  for (ExprId id : exprs) {
    values.push_back(value(id));
    r.is_lifted = r.is_lifted || values.back().lanes != 0;
  }
  const Type& source = expr(exprs[0]).type;
  r.shape = r.is_lifted ? lifted(source, 1) : source;
  r.axis = r.is_lifted ? std::int8_t{1} : axis_of(e, source);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ValueId array = r.is_lifted ? full(values[i], expr(exprs[i]).type, 1)
                                : emit().spread(values[i].id, r.shape);
    if (mask && i + 1 == values.size()) {
      r.mask = array;
    } else {
      r.arrays.push_back(array);
    }
  }
  return r;
}

std::vector<ValueId> ReduceLowering::emit_reduce(const Reduction& r, std::vector<ValueId> values,
                                                 std::vector<ValueId> inits,
                                                 ir::CombinerId combiner) {
  return emit().reduce(std::move(values), std::move(inits), combiner, r.axis, r.mask);
}

ValueId ReduceLowering::reduce_op(const Reduction& r, ValueId value, ScalarOp op, ValueId init) {
  return emit_reduce(r, {value}, {init}, emit().combiner(op))[0];
}

// How many elements are reduced: known on the host unless there is a mask.
ValueId ReduceLowering::reduce_count(const Reduction& r, DType dtype) {
  if (r.mask) {
    const ValueId ones = emit().convert(r.mask, kU32);
    Reduction all = r;
    all.mask = {};
    return emit().convert(reduce_op(all, ones, ScalarOp::add, emit().constant_int(kU32, 0)), dtype);
  }
  HostExprId len = r.axis == ir::kAll ? r.shape.dims[0] : r.shape.dims[r.axis];
  if (r.axis == ir::kAll && r.shape.rank == 2) len = emit().exprs().mul(len, r.shape.dims[1]);
  return host_scalar(len, dtype);
}

ValueId ReduceLowering::lowest(DType dtype) {
  if (is_float(dtype)) return emit().constant(dtype, -std::numeric_limits<double>::infinity());
  return emit().constant_int(dtype, min_int(dtype));
}

ValueId ReduceLowering::highest(DType dtype) {
  if (is_float(dtype)) return emit().constant(dtype, std::numeric_limits<double>::infinity());
  return emit().constant_int(dtype, static_cast<std::int64_t>(max_int(dtype)));
}

// d * (d * w) and not d * d * w: with w = 0, as when `init` joins, a large d must not give inf * 0.
ir::CombinerId ReduceLowering::moments_combiner(DType dtype) {
  const RegionId region = emit().open_region();
  ValueId a[3], b[3];
  for (ValueId* side : {a, b}) {
    side[0] = emit().add_arg(region, scalar_type(kU32));
    side[1] = emit().add_arg(region, scalar_type(dtype));
    side[2] = emit().add_arg(region, scalar_type(dtype));
  }
  const ValueId count = emit().map(ScalarOp::add, a[0], b[0]);
  const ValueId na = emit().convert(a[0], dtype);
  const ValueId nb = emit().convert(b[0], dtype);
  const ValueId share = emit().map(ScalarOp::div, nb, emit().convert(count, dtype));
  const ValueId distance = emit().map(ScalarOp::sub, b[1], a[1]);
  const ValueId mean = emit().map(ScalarOp::add, a[1], emit().map(ScalarOp::mul, distance, share));
  const ValueId weight = emit().map(ScalarOp::mul, na, share);
  const ValueId between =
      emit().map(ScalarOp::mul, distance, emit().map(ScalarOp::mul, distance, weight));
  const ValueId squares = emit().map(ScalarOp::add, emit().map(ScalarOp::add, a[2], b[2]), between);
  emit().close_region({count, mean, squares});
  return emit().region_combiner(region);
}

// Merges count, mean and sum of squared distances from the mean pairwise (Chan, Golub, LeVeque
// 1979).
ValueId ReduceLowering::reduce_std(const Reduction& r, DType dtype) {
  const ValueId x = emit().convert(r.arrays[0], dtype);
  const ValueId ones = emit().spread(emit().constant_int(kU32, 1), r.shape);
  const ValueId zeros = emit().spread(emit().constant_int(dtype, 0), r.shape);
  const ValueId zero = emit().constant_int(dtype, 0);
  const std::vector<ValueId> merged = emit_reduce(
      r, {ones, x, zeros}, {emit().constant_int(kU32, 0), zero, zero}, moments_combiner(dtype));
  const ValueId count = emit().convert(merged[0], dtype);
  return emit().map(ScalarOp::sqrt, emit().map(ScalarOp::divide_or_zero, merged[2], count));
}

// Positions along the reduced axis, in the shape of the array.
ValueId ReduceLowering::positions_along(const Reduction& r) {
  if (r.axis == ir::kAll && r.shape.rank == 1) return emit().iota(r.shape.dims[0]);
  if (r.axis == ir::kAll) {
    const HostExprId len = emit().exprs().mul(r.shape.dims[0], r.shape.dims[1]);
    return emit().reshape(emit().iota(len), r.shape);
  }
  const ValueId line = emit().iota(r.shape.dims[r.axis]);
  const Type across = r.axis == 1 ? matrix_type(kU32, emit().one(), r.shape.dims[1])
                                  : matrix_type(kU32, r.shape.dims[0], emit().one());
  return emit().spread(emit().reshape(line, across), r.shape);
}

// b replaces a if it is larger, equal with a lower index, or a number while a is a NaN.
ir::CombinerId ReduceLowering::argmax_combiner(DType dtype) {
  const RegionId region = emit().open_region();
  const ValueId av = emit().add_arg(region, scalar_type(dtype));
  const ValueId ai = emit().add_arg(region, scalar_type(kU32));
  const ValueId bv = emit().add_arg(region, scalar_type(dtype));
  const ValueId bi = emit().add_arg(region, scalar_type(kU32));
  const ValueId is_lower = emit().map(ScalarOp::lt, bi, ai);
  const ValueId ties = emit().map(ScalarOp::eq, bv, av);
  ValueId replaces = emit().map(ScalarOp::bit_or, emit().map(ScalarOp::gt, bv, av),
                                emit().map(ScalarOp::bit_and, ties, is_lower));
  if (is_float(dtype)) {
    const ValueId a_is_nan = emit().map(ScalarOp::isnan, av);
    const ValueId b_is_number = emit().map(ScalarOp::bit_not, emit().map(ScalarOp::isnan, bv));
    replaces = emit().map(ScalarOp::bit_or, replaces,
                          emit().map(ScalarOp::bit_and, a_is_nan, b_is_number));
  }
  emit().close_region({emit().map(ScalarOp::select, replaces, bv, av),
                       emit().map(ScalarOp::select, replaces, bi, ai)});
  return emit().region_combiner(region);
}

// (value, index) pairs; if there was no element, or only NaN, the index is 0.
ValueId ReduceLowering::reduce_argmax(const Reduction& r) {
  const ValueId x = r.arrays[0];
  const DType dtype = emit().dtype(x);
  const ValueId none = emit().constant_int(kU32, std::numeric_limits<std::uint32_t>::max());
  const std::vector<ValueId> best =
      emit_reduce(r, {x, positions_along(r)}, {lowest(dtype), none}, argmax_combiner(dtype));
  const ValueId is_none = emit().map(ScalarOp::eq, best[1], none);
  return emit().map(ScalarOp::select, is_none, emit().constant_int(kU32, 0), best[1]);
}

ValueId ReduceLowering::reduced_magnitudes(const Expr& e, const Reduction& r) {
  const DType dtype = e.type.dtype;
  const ValueId zero = emit().constant_int(dtype, 0);
  const ValueId x = emit().convert(r.arrays[0], dtype);
  switch (e.builtin) {
    case BuiltinId::dot: {
      const ValueId y = emit().convert(r.arrays[1], dtype);
      return reduce_op(r, emit().map(ScalarOp::mul, x, y), ScalarOp::add, zero);
    }
    case BuiltinId::norm1:
      return reduce_op(r, emit().map(ScalarOp::abs, x), ScalarOp::add, zero);
    case BuiltinId::norm2: {
      const ValueId squares = emit().map(ScalarOp::mul, x, x);
      return emit().map(ScalarOp::sqrt, reduce_op(r, squares, ScalarOp::add, zero));
    }
    case BuiltinId::norm_inf:
      return reduce_op(r, emit().map(ScalarOp::abs, x), ScalarOp::max, zero);
    default:
      break;
  }
  CINCH_BUG("a reduction without a lowering");
}

ValueId ReduceLowering::reduced(const Expr& e, const Reduction& r) {
  const DType dtype = e.type.dtype;
  const ValueId x = r.arrays[0];
  const auto sum = [&](ValueId v) {
    return reduce_op(r, v, ScalarOp::add, emit().constant_int(dtype, 0));
  };
  switch (e.builtin) {
    case BuiltinId::reduce: {
      const ValueId init = emit().convert(uniform(e.args.at(1)), dtype);
      const ir::CombinerId combiner = LambdaLowering(cx()).lower_combiner(e.args.at(2), dtype);
      return emit_reduce(r, {emit().convert(x, dtype)}, {init}, combiner)[0];
    }
    case BuiltinId::sum:
      return sum(emit().convert(x, dtype));
    case BuiltinId::mean:
      return emit().map(ScalarOp::divide_or_zero, sum(emit().convert(x, dtype)),
                        reduce_count(r, dtype));
    case BuiltinId::std:
      return reduce_std(r, dtype);
    case BuiltinId::min:
      return reduce_op(r, x, ScalarOp::min, highest(emit().dtype(x)));
    case BuiltinId::max:
      return reduce_op(r, x, ScalarOp::max, lowest(emit().dtype(x)));
    case BuiltinId::argmax:
      return reduce_argmax(r);
    case BuiltinId::any:
      return reduce_op(r, x, ScalarOp::bit_or, emit().constant_int(kBool, 0));
    case BuiltinId::all:
      return reduce_op(r, x, ScalarOp::bit_and, emit().constant_int(kBool, 1));
    case BuiltinId::count:
      return reduce_op(r, emit().convert(x, kU32), ScalarOp::add, emit().constant_int(kU32, 0));
    default:
      return reduced_magnitudes(e, r);
  }
}

Lowered ReduceLowering::lower(const Expr& e) {
  const bool is_dot = e.builtin == BuiltinId::dot;
  const bool is_general = e.builtin == BuiltinId::reduce;
  const std::size_t num_arrays = is_dot ? 2 : 1;
  const std::size_t mask_at = is_general ? 3 : num_arrays;
  const ExprId mask = e.args.size() > mask_at ? e.args[mask_at] : ExprId();
  const std::vector<ExprId> arrays(e.args.begin(),
                                   e.args.begin() + static_cast<std::ptrdiff_t>(num_arrays));
  Reduction r = prepare(e, arrays, mask);
  const ValueId result = emit().convert(reduced(e, r), e.type.dtype);
  if (!r.is_lifted) return {emit().spread(result, e.type)};
  if (e.type.rank > 0) return {result, 1};  // of a matrix of one row: it keeps its form
  return {emit().reshape(result, vector_type(e.type.dtype, cx().lanes.dims[0])), 1};
}

// A lambda over the elements of a small array, for each element of the outer one: the lanes are
// pairs.
Lowered LambdaLowering::lower_map_in_lanes(const Expr& e, const Expr& lambda) {
  if (cx().lanes.rank != 1 || e.type.rank != 1) limitation("a lambda over a matrix");
  const Lanes outer = cx().lanes;
  const HostExprId len = e.type.dims[0];
  for (std::size_t i = 0; i < lambda.params.size(); ++i) {
    Lowered array = value(e.args.at(i));
    if (expr(e.args[i]).type.rank > 0) array = {aligned(array, expr(e.args[i]).type, 1), 2};
    cx().vars[lambda.params[i].index()] = array;
  }
  cx().lanes = Lanes{2, {outer.dims[0], len}, outer.active};
  const Lowered body = value(lambda.args[0]);
  const bool is_uniform = body.lanes == 0 || (body.lanes == 2 && !emit().is_one(outer.dims[0]) &&
                                              emit().is_one(emit().type(body.id).dims[0]));
  Lowered result;
  if (is_uniform) {
    const Type row = vector_type(e.type.dtype, len);
    result = {body.lanes == 0 ? emit().spread(body.id, row) : emit().reshape(body.id, row)};
  } else {
    result = {full(body, scalar_type(e.type.dtype), 2), 1};
  }
  cx().lanes = outer;
  return result;
}

Lowered LambdaLowering::lower_map(const Expr& e) {
  const Expr& lambda = expr(e.args.back());
  CINCH_CHECK(lambda.kind == ExprKind::Lambda, "map needs a lambda");
  if (cx().lanes.rank != 0) return lower_map_in_lanes(e, lambda);
  const Lanes outer = cx().lanes;
  const bool is_flat = e.type.rank == 2 && touches_arrays(cx().checked, lambda.args.at(0));
  Type shape = e.type;
  if (is_flat) shape = vector_type(kF32, emit().exprs().mul(e.type.dims[0], e.type.dims[1]));
  for (std::size_t i = 0; i < lambda.params.size(); ++i) {
    ValueId array = uniform(e.args.at(i));
    const bool is_array = emit().type(array).rank > 0;
    if (is_array && is_flat) array = emit().reshape(emit().spread(array, e.type), shape);
    cx().vars[lambda.params[i].index()] = {array, is_array ? shape.rank : std::uint8_t{0}};
  }
  cx().lanes = Lanes{shape.rank, {shape.dims[0], shape.dims[1]}, {}};
  const Lowered body = value(lambda.args[0]);
  const ValueId result = full(body, scalar_type(e.type.dtype), shape.rank);
  cx().lanes = outer;
  return {is_flat ? emit().reshape(result, e.type) : result};
}

namespace {

bool is_plain_combiner(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
    case ScalarOp::mul:
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Recognises |a, b| a op b with a commutative operator, in either order.
std::optional<ScalarOp> LambdaLowering::plain_combiner(const Expr& lambda) const {
  const Expr& body = expr(lambda.args.at(0));
  if (body.kind != ExprKind::Scalar || !is_plain_combiner(body.scalar_op)) return {};
  const Expr& x = expr(body.args.at(0));
  const Expr& y = expr(body.args.at(1));
  if (x.kind != ExprKind::Var || y.kind != ExprKind::Var) return {};
  const VarId a = lambda.params.at(0), b = lambda.params.at(1);
  const bool in_order = x.var == a && y.var == b, swapped = x.var == b && y.var == a;
  return in_order || swapped ? std::optional(body.scalar_op) : std::nullopt;
}

ir::CombinerId LambdaLowering::lower_combiner(ExprId lambda_id, DType dtype) {
  const Expr& lambda = expr(lambda_id);
  CINCH_CHECK(lambda.kind == ExprKind::Lambda && lambda.params.size() == 2,
              "a combiner is a lambda of two parameters");
  if (const auto op = plain_combiner(lambda)) return emit().combiner(*op);
  const Lanes outer = std::exchange(cx().lanes, Lanes{});
  const bool outer_combiner = std::exchange(cx().in_combiner, true);
  const RegionId region = emit().open_region();
  for (VarId param : lambda.params)
    cx().vars[param.index()] = {emit().add_arg(region, scalar_type(dtype))};
  const ValueId joined = emit().convert(uniform(lambda.args[0]), dtype);
  emit().close_region({joined});
  cx().in_combiner = outer_combiner;
  cx().lanes = outer;
  return emit().region_combiner(region);
}

using sema::BuiltinId;

Lowered ScanSortLowering::lower_scan(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  const bool is_lifted = x.lanes != 0;
  ValueId array = is_lifted ? full(x, expr(e.args[0]).type, 1) : x.id;
  array = emit().convert(array, e.type.dtype);
  ir::Attrs attrs{.axis = is_lifted ? std::int8_t{1} : axis_of(e, emit().type(array)),
                  .exclusive = e.exclusive};
  ValueId init;
  if (e.builtin == BuiltinId::cumsum) {
    init = emit().constant_int(e.type.dtype, 0);
    attrs.combiner = emit().combiner(ScalarOp::add);
  } else {
    init = emit().convert(uniform(e.args.at(1)), e.type.dtype);
    attrs.combiner = LambdaLowering(cx()).lower_combiner(e.args.at(2), e.type.dtype);
  }
  const ValueId result = emit().emit(OpKind::scan, {array, init}, emit().type(array), attrs);
  return {result, x.lanes};
}

// Columns are sorted as rows of the transpose: targets sort only consecutive elements.
ValueId ScanSortLowering::order_of(ValueId keys, const ir::Attrs& attrs) {
  if (attrs.axis != 0) return emit().argsort(keys, attrs.descending, attrs.axis);
  return emit().transpose(emit().argsort(emit().transpose(keys), attrs.descending, 1));
}

// sort_by_key: values may differ between lanes although keys do not, and the other way round.
Lowered ScanSortLowering::sorted_values(const Expr& e, ValueId order, std::uint8_t lanes,
                                        int axis) {
  const Lowered values = value(e.args.at(1));
  const Type& type = expr(e.args[1]).type;
  if (lanes == 0 && values.lanes == 0) return {emit().along(values.id, order, axis)};
  const ValueId rows = full(values, type, 1);
  return {emit().along(rows, full({order, lanes}, with_dtype(type, kU32), 1), 1), 1};
}

Lowered ScanSortLowering::lower_sort(const Expr& e) {
  const Lowered key = value(e.args.at(0));
  const Type& key_type = expr(e.args[0]).type;
  const bool is_lifted = key.lanes != 0;
  const ValueId keys = is_lifted ? full(key, key_type, 1) : key.id;
  ir::Attrs attrs{.size = e.size,
                  .axis = is_lifted ? std::int8_t{1} : axis_of(e, key_type),
                  .descending = e.descending};
  if (e.builtin == BuiltinId::top_k) {
    const Type type = is_lifted ? lifted(e.type, 1) : e.type;
    return {emit().emit(OpKind::top_k, {keys}, type, attrs), key.lanes};
  }
  if (e.builtin == BuiltinId::kth_largest) {
    const Type type =
        is_lifted ? matrix_type(e.type.dtype, cx().lanes.dims[0], emit().one()) : e.type;
    const ValueId found = emit().emit(OpKind::kth_largest, {keys}, type, attrs);
    if (!is_lifted) return {found};
    return {emit().reshape(found, vector_type(e.type.dtype, cx().lanes.dims[0])), key.lanes};
  }
  const ValueId order = order_of(keys, attrs);
  if (e.builtin == BuiltinId::argsort) return {order, key.lanes};
  if (e.builtin == BuiltinId::sort) return {emit().along(keys, order, attrs.axis), key.lanes};
  return sorted_values(e, order, key.lanes, attrs.axis);
}

}  // namespace cinch::lower
