// ControlLowering: branches and loops on values that differ from element to element.
#include <algorithm>
#include <utility>

#include "compiler/lower/parts/expressions.h"

namespace cinch::lower {

// From here on only lanes that were active and meet the condition are active.
void ControlLowering::activate(Lowered condition) {
  std::optional<Lowered>& active = cx().lanes.active;
  if (!active) {
    active = condition;
    return;
  }
  const Type flag = scalar_type(kBool);
  const std::uint8_t lanes = std::max(condition.lanes, active->lanes);
  const ValueId both =
      emit().map(ScalarOp::bit_and, aligned(*active, flag, lanes), aligned(condition, flag, lanes));
  active = Lowered{both, lanes};
}

Lowered ControlLowering::lower_lane_if(const Expr& e) {
  const Lowered condition = value(e.args.at(0));
  const ExprId otherwise = e.args.size() > 2 ? e.args[2] : ExprId();
  const bool has_value = otherwise && gives_value(e.args[1]) && gives_value(otherwise);
  const Carried carried = carried_of({e.args[1], otherwise});
  const std::optional<Lowered> outer_active = cx().lanes.active;
  const auto lower_branch = [&](ExprId branch, Lowered reached) {
    std::vector<Lowered> before, after;
    for (VarId var : carried.vars) before.push_back(cx().vars[var.index()]);
    activate(reached);
    after.push_back(branch ? ExpressionLowering(cx()).lower(expr(branch)) : Lowered{});
    for (VarId var : carried.vars) {
      after.push_back(std::exchange(cx().vars[var.index()], before[after.size() - 1]));
    }
    cx().lanes.active = outer_active;
    return after;
  };
  const auto a = lower_branch(e.args[1], condition);
  const Lowered otherwise_reached{emit().map(ScalarOp::bit_not, condition.id), condition.lanes};
  const auto b = otherwise ? lower_branch(otherwise, otherwise_reached) : std::vector<Lowered>{};
  for (std::size_t i = 0; i < carried.vars.size(); ++i) {
    Lowered& var = cx().vars[carried.vars[i].index()];
    const Type& type = cx().checked.vars[carried.vars[i].index()].type;
    var = select_lanes(condition, a[i + 1], otherwise ? b[i + 1] : var, type);
  }
  return has_value ? select_lanes(condition, a[0], b[0], e.type) : Lowered{};
}

// All lanes iterate together; a lane whose condition has failed keeps its values from then on.
void ControlLowering::lower_lane_while(const Stmt& s) {
  const Type flag = scalar_type(kBool);
  const ValueId outer_round = cx().round;
  const auto draws_before = cx().draws_of_loops;
  const Carried carried = carried_of_while(s);
  const std::uint8_t lanes = cx().lanes.rank;
  const std::optional<Lowered> outer_active = cx().lanes.active;
  std::vector<ValueId> inits = current(carried);
  const Lowered start = outer_active.value_or(Lowered{emit().constant_int(kBool, 1)});
  inits.push_back(full(start, flag, lanes));
  const auto enter = [&] {
    std::vector<ValueId> args;
    args.reserve(inits.size());
    for (ValueId init : inits) args.push_back(emit().add_arg(emit().region(), emit().type(init)));
    set_current(carried, args);
    number_round(carried.draws, cx().round);
    cx().lanes.active = Lowered{args.back(), lanes};
    activate(value(s.expr2));
    cx().lanes.active = Lowered{full(*cx().lanes.active, flag, lanes), lanes};
    return args;
  };
  const RegionId condition = lower_region(carried, [&] {
    enter();
    return std::vector<ValueId>{emit().reduce(ScalarOp::bit_or, cx().lanes.active->id)};
  });
  const RegionId body = lower_region(carried, [&] {
    const std::vector<ValueId> before = enter();
    const Lowered reached = *cx().lanes.active;
    std::vector<ValueId> after = loop_body_results(s.expr, carried);
    for (std::size_t i = 0; i < carried.vars.size(); ++i) {
      const Type& type = cx().checked.vars[carried.vars[i].index()].type;
      after[i] = select_lanes(reached, {after[i], lanes}, {before[i], lanes}, type).id;
    }
    after.push_back(reached.id);
    return after;
  });
  cx().lanes.active = outer_active;
  std::vector<Type> types;
  types.reserve(inits.size());
  for (ValueId init : inits) types.push_back(emit().type(init));
  ir::Attrs attrs;
  attrs.size = s.size;
  std::vector<ValueId> results =
      emit().emit_multi(OpKind::while_loop, inits, types, attrs, {condition, body});
  results.pop_back();
  set_current(carried, results);
  cx().round = outer_round;
  number_after(carried.draws, draws_before);
}

}  // namespace cinch::lower
