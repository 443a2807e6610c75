// Lambdas. Over elements: the body is lowered once, on arrays of all elements ("lanes", see
// body_lowering.h); a condition that differs from lane to lane becomes a select, a loop runs while
// some lane is active. Over pairs: a Combiner.
#include <algorithm>
#include <utility>

#include "compiler/lower/body_lowering.h"
#include "runtime/core/check.h"

namespace cinch::lower {

// Ranks that have no lifted form are a limitation; a matrix of one row counts as a vector.
int BodyLowering::lane_rank(const Type& source, int lanes) {
  const bool is_row = source.rank == 2 && emit_.is_one(source.dims[0]);
  const int rank = is_row ? 1 : source.rank;
  if (rank + lanes > 2) limitation("an operator on matrices");
  return rank;
}

Type BodyLowering::lifted(const Type& source, int lanes) {
  if (lanes == 0) return source;
  const int rank = lane_rank(source, lanes);
  if (lanes == 2) return matrix_type(source.dtype, lanes_.dims[0], lanes_.dims[1]);
  if (rank == 0) return vector_type(source.dtype, lanes_.dims[0]);
  return matrix_type(source.dtype, lanes_.dims[0], source.dims[source.rank - 1]);
}

// In a shape that broadcasts with others of the same source type and lanes.
ValueId BodyLowering::aligned(Lowered v, const Type& target, int lanes) {
  const Type type = emit_.type(v.id);
  if (type.rank == 0 || lanes == 0) return v.id;
  const int rank = lane_rank(target, lanes);
  if (lanes == 2) {
    if (v.lanes == 0) limitation("an operator on matrices");
    return v.lanes == 2 ? v.id
                        : emit_.reshape(v.id, matrix_type(type.dtype, type.dims[0], emit_.one()));
  }
  if (rank == 0 || type.rank == 2) return v.id;
  return v.lanes == 1 ? emit_.reshape(v.id, matrix_type(type.dtype, type.dims[0], emit_.one()))
                      : emit_.reshape(v.id, matrix_type(type.dtype, emit_.one(), type.dims[0]));
}

ValueId BodyLowering::full(Lowered v, const Type& source, int lanes) {
  if (lanes == 0) return emit_.spread(v.id, source);
  const Type type = lifted(source, lanes);
  return emit_.spread(aligned(v, source, lanes), type);
}

Lowered BodyLowering::select_lanes(Lowered condition, Lowered a, Lowered b, const Type& source) {
  if (a.id == b.id) return a;
  const std::uint8_t lanes = std::max({condition.lanes, a.lanes, b.lanes});
  const ValueId chosen = emit_.map(ScalarOp::select, aligned(condition, source, lanes),
                                   aligned(a, source, lanes), aligned(b, source, lanes));
  return {chosen, lanes};
}

// From here on only the lanes that were active and meet the condition are.
void BodyLowering::activate(Lowered condition) {
  if (!lanes_.active) {
    lanes_.active = condition;
    return;
  }
  const Type flag = scalar_type(kBool);
  const std::uint8_t lanes = std::max(condition.lanes, lanes_.active->lanes);
  const ValueId both = emit_.map(ScalarOp::bit_and, aligned(*lanes_.active, flag, lanes),
                                 aligned(condition, flag, lanes));
  lanes_.active = Lowered{both, lanes};
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

// A lambda over the elements of a small array, once per element of the outer one: the lanes are
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

Lowered BodyLowering::lower_lane_if(const Expr& e) {
  const Lowered condition = value(e.args.at(0));
  const ExprId otherwise = e.args.size() > 2 ? e.args[2] : ExprId();
  const bool has_value = otherwise && gives_value(e.args[1]) && gives_value(otherwise);
  const Carried carried = carried_of({e.args[1], otherwise}, false);
  const std::optional<Lowered> outer_active = lanes_.active;
  const auto lower_branch = [&](ExprId branch, Lowered reached) {
    std::vector<Lowered> before, after;
    for (VarId var : carried.vars) before.push_back(vars_[var.index()]);
    activate(reached);
    after.push_back(branch ? lower_kind(expr(branch)) : Lowered{});
    for (VarId var : carried.vars) {
      after.push_back(std::exchange(vars_[var.index()], before[after.size() - 1]));
    }
    lanes_.active = outer_active;
    return after;
  };
  const auto a = lower_branch(e.args[1], condition);
  const Lowered otherwise_reached{emit_.map(ScalarOp::bit_not, condition.id), condition.lanes};
  const auto b = otherwise ? lower_branch(otherwise, otherwise_reached) : std::vector<Lowered>{};
  for (std::size_t i = 0; i < carried.vars.size(); ++i) {
    Lowered& var = vars_[carried.vars[i].index()];
    const Type& type = checked_.vars[carried.vars[i].index()].type;
    var = select_lanes(condition, a[i + 1], otherwise ? b[i + 1] : var, type);
  }
  return has_value ? select_lanes(condition, a[0], b[0], e.type) : Lowered{};
}

// All lanes go round together; one whose condition failed keeps its values from then on.
void BodyLowering::lower_lane_while(const Stmt& s) {
  const Type flag = scalar_type(kBool);
  const Carried carried = carried_of({s.expr2, s.expr}, true);
  const std::uint8_t lanes = lanes_.rank;
  const std::optional<Lowered> outer_active = lanes_.active;
  std::vector<ValueId> inits = current(carried);
  const Lowered start = outer_active.value_or(Lowered{emit_.constant_int(kBool, 1)});
  inits.push_back(full(start, flag, lanes));
  const auto enter = [&] {
    std::vector<ValueId> args;
    args.reserve(inits.size());
    for (ValueId init : inits) args.push_back(emit_.add_arg(emit_.region(), emit_.type(init)));
    set_current(carried, args);
    lanes_.active = Lowered{args.back(), lanes};
    activate(value(s.expr2));
    lanes_.active = Lowered{full(*lanes_.active, flag, lanes), lanes};
    return args;
  };
  const RegionId condition = lower_region(carried, [&] {
    enter();
    return std::vector<ValueId>{emit_.reduce(ScalarOp::bit_or, lanes_.active->id)};
  });
  const RegionId body = lower_region(carried, [&] {
    const std::vector<ValueId> before = enter();
    const Lowered reached = *lanes_.active;
    std::vector<ValueId> after = loop_body_results(s.expr, carried);
    for (std::size_t i = 0; i < carried.vars.size(); ++i) {
      const Type& type = checked_.vars[carried.vars[i].index()].type;
      after[i] = select_lanes(reached, {after[i], lanes}, {before[i], lanes}, type).id;
    }
    after.push_back(reached.id);
    return after;
  });
  lanes_.active = outer_active;
  std::vector<Type> types;
  types.reserve(inits.size());
  for (ValueId init : inits) types.push_back(emit_.type(init));
  ir::Attrs attrs;
  attrs.size = s.size;
  std::vector<ValueId> results =
      emit_.emit_multi(OpKind::while_loop, inits, types, attrs, {condition, body});
  results.pop_back();
  leave_loop(carried, results, {s.expr2});
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

// |a, b| a op b of a commutative operator, in either order.
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

}  // namespace cinch::lower
