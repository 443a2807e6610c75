#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/lower/emitter.h"
#include "compiler/lower/parts/body_lowering.h"
#include "compiler/lower/prelude.h"
#include "runtime/core/check.h"

namespace cinch::lower {
using sema::BuiltinId;

// The operand of a reduction, lifted: inside a lambda a vector per element is a matrix, reduced
// along its rows.
struct BodyLowering::Reduction {
  std::vector<ValueId> arrays;
  ValueId mask;
  Type shape;  // of the arrays
  std::int8_t axis = ir::kAll;
  bool is_lifted = false;
};

BodyLowering::Reduction BodyLowering::prepare(const Expr& e, const std::vector<ExprId>& arrays,
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
    ValueId array =
        r.is_lifted ? full(values[i], expr(exprs[i]).type, 1) : emit_.spread(values[i].id, r.shape);
    if (mask && i + 1 == values.size()) {
      r.mask = array;
    } else {
      r.arrays.push_back(array);
    }
  }
  return r;
}

std::vector<ValueId> BodyLowering::emit_reduce(const Reduction& r, std::vector<ValueId> values,
                                               std::vector<ValueId> inits,
                                               ir::CombinerId combiner) {
  return emit_.reduce(std::move(values), std::move(inits), combiner, r.axis, r.mask);
}

ValueId BodyLowering::reduce_op(const Reduction& r, ValueId value, ScalarOp op, ValueId init) {
  return emit_reduce(r, {value}, {init}, emit_.combiner(op))[0];
}

// How many elements are reduced: known on the host unless there is a mask.
ValueId BodyLowering::reduce_count(const Reduction& r, DType dtype) {
  if (r.mask) {
    const ValueId ones = emit_.convert(r.mask, kU32);
    Reduction all = r;
    all.mask = {};
    return emit_.convert(reduce_op(all, ones, ScalarOp::add, emit_.constant_int(kU32, 0)), dtype);
  }
  HostExprId len = r.axis == ir::kAll ? r.shape.dims[0] : r.shape.dims[r.axis];
  if (r.axis == ir::kAll && r.shape.rank == 2) len = emit_.exprs().mul(len, r.shape.dims[1]);
  return host_scalar(len, dtype);
}

ValueId BodyLowering::lowest(DType dtype) {
  if (is_float(dtype)) return emit_.constant(dtype, -std::numeric_limits<double>::infinity());
  return emit_.constant_int(dtype, min_int(dtype));
}

ValueId BodyLowering::highest(DType dtype) {
  if (is_float(dtype)) return emit_.constant(dtype, std::numeric_limits<double>::infinity());
  return emit_.constant_int(dtype, static_cast<std::int64_t>(max_int(dtype)));
}

// d * (d * w) and not d * d * w: with w = 0, as when `init` joins, a large d must not give inf * 0.
ir::CombinerId BodyLowering::moments_combiner(DType dtype) {
  const RegionId region = emit_.open_region();
  ValueId a[3], b[3];
  for (ValueId* side : {a, b}) {
    side[0] = emit_.add_arg(region, scalar_type(kU32));
    side[1] = emit_.add_arg(region, scalar_type(dtype));
    side[2] = emit_.add_arg(region, scalar_type(dtype));
  }
  const ValueId count = emit_.map(ScalarOp::add, a[0], b[0]);
  const ValueId na = emit_.convert(a[0], dtype);
  const ValueId nb = emit_.convert(b[0], dtype);
  const ValueId share = emit_.map(ScalarOp::div, nb, emit_.convert(count, dtype));
  const ValueId distance = emit_.map(ScalarOp::sub, b[1], a[1]);
  const ValueId mean = emit_.map(ScalarOp::add, a[1], emit_.map(ScalarOp::mul, distance, share));
  const ValueId weight = emit_.map(ScalarOp::mul, na, share);
  const ValueId between =
      emit_.map(ScalarOp::mul, distance, emit_.map(ScalarOp::mul, distance, weight));
  const ValueId squares = emit_.map(ScalarOp::add, emit_.map(ScalarOp::add, a[2], b[2]), between);
  emit_.close_region({count, mean, squares});
  return emit_.region_combiner(region);
}

// Merges count, mean and sum of squared distances from the mean pairwise (Chan, Golub, LeVeque
// 1979).
ValueId BodyLowering::reduce_variance(const Reduction& r, DType dtype) {
  const ValueId x = emit_.convert(r.arrays[0], dtype);
  const ValueId ones = emit_.spread(emit_.constant_int(kU32, 1), r.shape);
  const ValueId zeros = emit_.spread(emit_.constant_int(dtype, 0), r.shape);
  const ValueId zero = emit_.constant_int(dtype, 0);
  const std::vector<ValueId> merged = emit_reduce(
      r, {ones, x, zeros}, {emit_.constant_int(kU32, 0), zero, zero}, moments_combiner(dtype));
  const ValueId count = emit_.convert(merged[0], dtype);
  return emit_.map(ScalarOp::divide_or_zero, merged[2], count);
}

// Positions along the reduced axis, in the shape of the array.
ValueId BodyLowering::positions_along(const Reduction& r) {
  if (r.axis == ir::kAll && r.shape.rank == 1) return emit_.iota(r.shape.dims[0]);
  if (r.axis == ir::kAll) {
    const HostExprId len = emit_.exprs().mul(r.shape.dims[0], r.shape.dims[1]);
    return emit_.reshape(emit_.iota(len), r.shape);
  }
  const ValueId line = emit_.iota(r.shape.dims[r.axis]);
  const Type across = r.axis == 1 ? matrix_type(kU32, emit_.one(), r.shape.dims[1])
                                  : matrix_type(kU32, r.shape.dims[0], emit_.one());
  return emit_.spread(emit_.reshape(line, across), r.shape);
}

// b replaces a if it is larger (or smaller), equal with a lower index, or a number while a is a
// NaN.
ir::CombinerId BodyLowering::place_combiner(DType dtype, bool of_least) {
  const RegionId region = emit_.open_region();
  const ValueId av = emit_.add_arg(region, scalar_type(dtype));
  const ValueId ai = emit_.add_arg(region, scalar_type(kU32));
  const ValueId bv = emit_.add_arg(region, scalar_type(dtype));
  const ValueId bi = emit_.add_arg(region, scalar_type(kU32));
  const ValueId is_lower = emit_.map(ScalarOp::lt, bi, ai);
  const ValueId ties = emit_.map(ScalarOp::eq, bv, av);
  const ValueId is_beyond = emit_.map(of_least ? ScalarOp::lt : ScalarOp::gt, bv, av);
  ValueId replaces =
      emit_.map(ScalarOp::bit_or, is_beyond, emit_.map(ScalarOp::bit_and, ties, is_lower));
  if (is_float(dtype)) {
    const ValueId a_is_nan = emit_.map(ScalarOp::isnan, av);
    const ValueId b_is_number = emit_.map(ScalarOp::bit_not, emit_.map(ScalarOp::isnan, bv));
    replaces =
        emit_.map(ScalarOp::bit_or, replaces, emit_.map(ScalarOp::bit_and, a_is_nan, b_is_number));
  }
  emit_.close_region({emit_.map(ScalarOp::select, replaces, bv, av),
                      emit_.map(ScalarOp::select, replaces, bi, ai)});
  return emit_.region_combiner(region);
}

// (value, index) pairs; if there was no element, or only NaN, the index is 0.
ValueId BodyLowering::reduce_place(const Reduction& r, bool of_least) {
  const ValueId x = r.arrays[0];
  const DType dtype = emit_.dtype(x);
  const ValueId none = emit_.constant_int(kU32, std::numeric_limits<std::uint32_t>::max());
  const ValueId worst = of_least ? highest(dtype) : lowest(dtype);
  const std::vector<ValueId> best =
      emit_reduce(r, {x, positions_along(r)}, {worst, none}, place_combiner(dtype, of_least));
  const ValueId is_none = emit_.map(ScalarOp::eq, best[1], none);
  return emit_.map(ScalarOp::select, is_none, emit_.constant_int(kU32, 0), best[1]);
}

ValueId BodyLowering::reduced_magnitudes(const Expr& e, const Reduction& r) {
  const DType dtype = e.type.dtype;
  const ValueId zero = emit_.constant_int(dtype, 0);
  const ValueId x = emit_.convert(r.arrays[0], dtype);
  switch (e.builtin) {
    case BuiltinId::dot: {
      const ValueId y = emit_.convert(r.arrays[1], dtype);
      return reduce_op(r, emit_.map(ScalarOp::mul, x, y), ScalarOp::add, zero);
    }
    case BuiltinId::norm1:
      return reduce_op(r, emit_.map(ScalarOp::abs, x), ScalarOp::add, zero);
    case BuiltinId::norm2: {
      const ValueId squares = emit_.map(ScalarOp::mul, x, x);
      return emit_.map(ScalarOp::sqrt, reduce_op(r, squares, ScalarOp::add, zero));
    }
    case BuiltinId::norm_inf:
      return reduce_op(r, emit_.map(ScalarOp::abs, x), ScalarOp::max, zero);
    default:
      break;
  }
  CINCH_BUG("a reduction without a lowering");
}

ValueId BodyLowering::reduced(const Expr& e, const Reduction& r) {
  const DType dtype = e.type.dtype;
  const ValueId x = r.arrays[0];
  const auto sum = [&](ValueId v) {
    return reduce_op(r, v, ScalarOp::add, emit_.constant_int(dtype, 0));
  };
  switch (e.builtin) {
    case BuiltinId::reduce: {
      const ValueId init = emit_.convert(uniform(e.args.at(1)), dtype);
      const ir::CombinerId combiner = lower_combiner(e.args.at(2), dtype);
      return emit_reduce(r, {emit_.convert(x, dtype)}, {init}, combiner)[0];
    }
    case BuiltinId::sum:
      return sum(emit_.convert(x, dtype));
    case BuiltinId::mean:
      return emit_.map(ScalarOp::divide_or_zero, sum(emit_.convert(x, dtype)),
                       reduce_count(r, dtype));
    case BuiltinId::prod:
      return reduce_op(r, emit_.convert(x, dtype), ScalarOp::mul, emit_.constant_int(dtype, 1));
    case BuiltinId::var:
      return reduce_variance(r, dtype);
    case BuiltinId::std:
      return emit_.map(ScalarOp::sqrt, reduce_variance(r, dtype));
    case BuiltinId::min:
      return reduce_op(r, x, ScalarOp::min, highest(emit_.dtype(x)));
    case BuiltinId::max:
      return reduce_op(r, x, ScalarOp::max, lowest(emit_.dtype(x)));
    case BuiltinId::argmin:
    case BuiltinId::argmax:
      return reduce_place(r, e.builtin == BuiltinId::argmin);
    case BuiltinId::any:
      return reduce_op(r, x, ScalarOp::bit_or, emit_.constant_int(kBool, 0));
    case BuiltinId::all:
      return reduce_op(r, x, ScalarOp::bit_and, emit_.constant_int(kBool, 1));
    case BuiltinId::count:
      return reduce_op(r, emit_.convert(x, kU32), ScalarOp::add, emit_.constant_int(kU32, 0));
    default:
      return reduced_magnitudes(e, r);
  }
}

Lowered BodyLowering::lower_reduce(const Expr& e) {
  const bool is_dot = e.builtin == BuiltinId::dot;
  const bool is_general = e.builtin == BuiltinId::reduce;
  const std::size_t num_arrays = is_dot ? 2 : 1;
  const std::size_t mask_at = is_general ? 3 : num_arrays;
  const ExprId mask = e.args.size() > mask_at ? e.args[mask_at] : ExprId();
  const std::vector<ExprId> arrays(e.args.begin(),
                                   e.args.begin() + static_cast<std::ptrdiff_t>(num_arrays));
  Reduction r = prepare(e, arrays, mask);
  const ValueId result = emit_.convert(reduced(e, r), e.type.dtype);
  if (!r.is_lifted) return {emit_.spread(result, e.type)};
  if (e.type.rank > 0) return {result, 1};  // of a matrix of one row: it keeps its form
  return {emit_.reshape(result, vector_type(e.type.dtype, lanes_.dims[0])), 1};
}

// A lambda over the elements of a small array, for each element of the outer one: the lanes are
// pairs.
Lowered BodyLowering::lower_map_in_lanes(const Expr& e, const Expr& lambda) {
  if (lanes_.rank != 1 || e.type.rank != 1) limitation("a lambda over a matrix");
  const Lanes outer = lanes_;
  const HostExprId len = e.type.dims[0];
  for (std::size_t i = 0; i < lambda.params.size(); ++i) {
    Lowered array = value(e.args.at(i));
    if (expr(e.args[i]).type.rank > 0) array = {aligned(array, expr(e.args[i]).type, 1), 2};
    vars_[lambda.params[i].index()] = array;
  }
  lanes_ = Lanes{2, {outer.dims[0], len}, outer.active};
  const Lowered body = value(lambda.args[0]);
  const bool is_uniform = body.lanes == 0 || (body.lanes == 2 && !emit_.is_one(outer.dims[0]) &&
                                              emit_.is_one(emit_.type(body.id).dims[0]));
  Lowered result;
  if (is_uniform) {
    const Type row = vector_type(e.type.dtype, len);
    result = {body.lanes == 0 ? emit_.spread(body.id, row) : emit_.reshape(body.id, row)};
  } else {
    result = {full(body, scalar_type(e.type.dtype), 2), 1};
  }
  lanes_ = outer;
  return result;
}

Lowered BodyLowering::lower_map(const Expr& e) {
  const Expr& lambda = expr(e.args.back());
  CINCH_CHECK(lambda.kind == ExprKind::Lambda, "map needs a lambda");
  if (lanes_.rank != 0) return lower_map_in_lanes(e, lambda);
  const Lanes outer = lanes_;
  const bool is_flat = e.type.rank == 2 && touches_arrays(checked_, lambda.args.at(0));
  Type shape = e.type;
  if (is_flat) shape = vector_type(kF32, emit_.exprs().mul(e.type.dims[0], e.type.dims[1]));
  for (std::size_t i = 0; i < lambda.params.size(); ++i) {
    ValueId array = uniform(e.args.at(i));
    const bool is_array = emit_.type(array).rank > 0;
    if (is_array && is_flat) array = emit_.reshape(emit_.spread(array, e.type), shape);
    vars_[lambda.params[i].index()] = {array, is_array ? shape.rank : std::uint8_t{0}};
  }
  lanes_ = Lanes{shape.rank, {shape.dims[0], shape.dims[1]}, {}};
  const Lowered body = value(lambda.args[0]);
  const ValueId result = full(body, scalar_type(e.type.dtype), shape.rank);
  lanes_ = outer;
  return {is_flat ? emit_.reshape(result, e.type) : result};
}

static bool is_plain_combiner(ScalarOp op) {
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

// Recognises |a, b| a op b with a commutative operator, in either order.
std::optional<ScalarOp> BodyLowering::plain_combiner(const Expr& lambda) const {
  const Expr& body = expr(lambda.args.at(0));
  if (body.kind != ExprKind::Scalar || !is_plain_combiner(body.scalar_op)) return {};
  const Expr& x = expr(body.args.at(0));
  const Expr& y = expr(body.args.at(1));
  if (x.kind != ExprKind::Var || y.kind != ExprKind::Var) return {};
  const VarId a = lambda.params.at(0), b = lambda.params.at(1);
  const bool in_order = x.var == a && y.var == b, swapped = x.var == b && y.var == a;
  return in_order || swapped ? std::optional(body.scalar_op) : std::nullopt;
}

ir::CombinerId BodyLowering::lower_combiner(ExprId lambda_id, DType dtype) {
  const Expr& lambda = expr(lambda_id);
  CINCH_CHECK(lambda.kind == ExprKind::Lambda && lambda.params.size() == 2,
              "a combiner is a lambda of two parameters");
  if (const auto op = plain_combiner(lambda)) return emit_.combiner(*op);
  const Lanes outer = std::exchange(lanes_, Lanes{});
  const bool outer_combiner = std::exchange(in_combiner_, true);
  const RegionId region = emit_.open_region();
  for (VarId param : lambda.params)
    vars_[param.index()] = {emit_.add_arg(region, scalar_type(dtype))};
  const ValueId joined = emit_.convert(uniform(lambda.args[0]), dtype);
  emit_.close_region({joined});
  in_combiner_ = outer_combiner;
  lanes_ = outer;
  return emit_.region_combiner(region);
}

using sema::BuiltinId;

Lowered BodyLowering::lower_scan(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  const bool is_lifted = x.lanes != 0;
  ValueId array = is_lifted ? full(x, expr(e.args[0]).type, 1) : x.id;
  array = emit_.convert(array, e.type.dtype);
  ir::Attrs attrs{.axis = is_lifted ? std::int8_t{1} : axis_of(e, emit_.type(array)),
                  .exclusive = e.exclusive};
  ValueId init;
  if (e.builtin == BuiltinId::cumsum) {
    init = emit_.constant_int(e.type.dtype, 0);
    attrs.combiner = emit_.combiner(ScalarOp::add);
  } else if (e.builtin == BuiltinId::cummax) {
    init = lowest(e.type.dtype);
    attrs.combiner = emit_.combiner(ScalarOp::max);
  } else {
    init = emit_.convert(uniform(e.args.at(1)), e.type.dtype);
    attrs.combiner = lower_combiner(e.args.at(2), e.type.dtype);
  }
  const ValueId result = emit_.emit(OpKind::scan, {array, init}, emit_.type(array), attrs);
  return {result, x.lanes};
}

// Columns are sorted as rows of the transpose: targets sort only consecutive elements.
ValueId BodyLowering::order_of(ValueId keys, const ir::Attrs& attrs) {
  if (attrs.axis != 0) return emit_.argsort(keys, attrs.descending, attrs.axis);
  return emit_.transpose(emit_.argsort(emit_.transpose(keys), attrs.descending, 1));
}

// sort_by_key: values may differ between lanes although keys do not, and the other way round.
Lowered BodyLowering::sorted_values(const Expr& e, ValueId order, std::uint8_t lanes, int axis) {
  const Lowered values = value(e.args.at(1));
  const Type& type = expr(e.args[1]).type;
  if (lanes == 0 && values.lanes == 0) return {emit_.along(values.id, order, axis)};
  const ValueId rows = full(values, type, 1);
  return {emit_.along(rows, full({order, lanes}, with_dtype(type, kU32), 1), 1), 1};
}

// A binary search, written out: each step asks whether the next power of two more are below. It
// reads a zero behind the last element where there may be none.
Lowered BodyLowering::lower_search(const Expr& e) {
  const Lowered x = value(e.args.at(1));
  ValueId sorted = uniform(e.args.at(0));
  const Type& line = emit_.type(sorted);
  const HostExprId len = line.dims[0];
  const DType dtype = line.dtype;
  const auto known = ir::constant_size(emit_.exprs(), len);
  const ValueId num = host_scalar(len, kU32);
  ValueId last = num;
  if (known && *known > 0) {
    last = emit_.constant_int(kU32, *known - 1);
  } else {
    const ValueId zero =
        emit_.spread(emit_.constant_int(dtype, 0), vector_type(dtype, emit_.one()));
    sorted = emit_.concat({sorted, zero});
  }
  const Type shape = emit_.type(x.id);
  ValueId wanted = x.id;
  if (shape.rank == 2) {
    wanted =
        emit_.reshape(wanted, vector_type(dtype, emit_.exprs().mul(shape.dims[0], shape.dims[1])));
  }
  const bool takes_equal = e.keep == sema::Keep::Last;
  const ValueId one = emit_.constant_int(kU32, 1);
  ValueId at = emit_.spread(emit_.constant_int(kU32, 0), with_dtype(emit_.type(wanted), kU32));
  const int bits = known ? std::bit_width(static_cast<std::uint64_t>(*known)) : 32;
  for (int bit = bits; bit-- > 0;) {
    const ValueId next =
        emit_.map(ScalarOp::add, at, emit_.constant_int(kU32, std::int64_t{1} << bit));
    const ValueId place = emit_.map(ScalarOp::min, emit_.map(ScalarOp::sub, next, one), last);
    const ValueId found = emit_.gather(sorted, place);
    ValueId is_below = emit_.map(takes_equal ? ScalarOp::le : ScalarOp::lt, found, wanted);
    if (is_float(dtype)) {
      ValueId is_last = emit_.map(ScalarOp::isnan, wanted);
      if (!takes_equal) {
        const ValueId is_number = emit_.map(ScalarOp::bit_not, emit_.map(ScalarOp::isnan, found));
        is_last = emit_.map(ScalarOp::bit_and, is_last, is_number);
      }
      is_below = emit_.map(ScalarOp::bit_or, is_below, is_last);
    }
    const ValueId is_there = emit_.map(ScalarOp::le, next, num);
    at = emit_.select(emit_.map(ScalarOp::bit_and, is_there, is_below), next, at);
  }
  return {emit_.reshape(at, with_dtype(shape, kU32)), x.lanes};
}

// The median or a quantile of the elements of each row where a mask is true.
Lowered BodyLowering::lower_rank_of_some(const Expr& e) {
  const DType dtype = e.type.dtype;
  const ValueId none = highest(dtype);
  const ValueId last =
      is_float(dtype) ? emit_.constant(dtype, std::numeric_limits<double>::quiet_NaN()) : none;
  std::vector<PreludeArgument> arguments{uniform(e.args.at(0)), uniform(e.args.at(1)), last, none};
  const bool is_median = e.builtin == BuiltinId::median;
  if (!is_median) arguments.emplace_back(host_scalar(e.size, kF64));
  const PreludeContext context{"", "", counts_};
  return {call_prelude(emit_, is_median ? "median_of_rows" : "quantile_of_rows", dtype, arguments,
                       &context)[0]};
}

Lowered BodyLowering::lower_sort(const Expr& e) {
  if (e.builtin == BuiltinId::searchsorted) return lower_search(e);
  if (e.builtin == BuiltinId::median || e.builtin == BuiltinId::quantile)
    return lower_rank_of_some(e);
  const Lowered key = value(e.args.at(0));
  const Type& key_type = expr(e.args[0]).type;
  const bool is_lifted = key.lanes != 0;
  const ValueId keys = is_lifted ? full(key, key_type, 1) : key.id;
  ir::Attrs attrs{.size = e.size,
                  .axis = is_lifted ? std::int8_t{1} : axis_of(e, key_type),
                  .descending = e.descending};
  if (e.builtin == BuiltinId::top_k) {
    const Type type = is_lifted ? lifted(e.type, 1) : e.type;
    return {emit_.emit(OpKind::top_k, {keys}, type, attrs), key.lanes};
  }
  if (e.builtin == BuiltinId::kth_largest) {
    const Type type = is_lifted ? matrix_type(e.type.dtype, lanes_.dims[0], emit_.one()) : e.type;
    const ValueId found = emit_.emit(OpKind::kth_largest, {keys}, type, attrs);
    if (!is_lifted) return {found};
    return {emit_.reshape(found, vector_type(e.type.dtype, lanes_.dims[0])), key.lanes};
  }
  const ValueId order = order_of(keys, attrs);
  if (e.builtin == BuiltinId::argsort) return {order, key.lanes};
  if (e.builtin == BuiltinId::sort) return {emit_.along(keys, order, attrs.axis), key.lanes};
  return sorted_values(e, order, key.lanes, attrs.axis);
}

}  // namespace cinch::lower
