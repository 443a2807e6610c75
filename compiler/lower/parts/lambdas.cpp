// Bodies of Lambdas (reductions.h).
#include "compiler/lower/parts/reductions.h"

#include <utility>

#include "compiler/lower/assigned.h"
#include "runtime/core/check.h"

namespace cinch::lower {

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

}  // namespace cinch::lower
