// (expressions.h): branches and loops as regions.
#include <algorithm>
#include <utility>

#include "compiler/lower/emitter.h"
#include "compiler/lower/parts/body_lowering.h"
#include "runtime/core/mapped.h"

namespace cinch::lower {
BodyLowering::Carried BodyLowering::carried_of(const std::vector<ExprId>& roots) {
  Assigned assigned = find_assigned(checked_, roots);
  return {std::move(assigned.vars), std::move(assigned.states), {}};
}

BodyLowering::Carried BodyLowering::carried_of_while(const Stmt& s) {
  Carried carried = carried_of({s.expr2, s.expr});
  carried.draws = loop_draws(checked_, s, emit_.exprs());
  if (!carried.draws.empty()) round_ = emit_.constant_int(kI64, 0);
  return carried;
}

std::vector<ValueId> BodyLowering::current(const Carried& carried) {
  std::vector<ValueId> values;
  for (VarId var : carried.vars) {
    const Lowered v = vars_[var.index()];
    const Type& type = checked_.vars[var.index()].type;
    values.push_back(lanes_.rank == 0 ? v.id : full(v, type, lanes_.rank));
  }
  for (std::uint32_t state : carried.states) values.push_back(states_[state]);
  if (!carried.draws.empty()) values.push_back(round_);
  return values;
}

void BodyLowering::set_current(const Carried& carried, const std::vector<ValueId>& values) {
  std::size_t next = 0;
  for (VarId var : carried.vars) {
    vars_[var.index()] = {values[next], lanes_.rank};
    emit_.name(values[next++], checked_.vars[var.index()].name);
  }
  for (std::uint32_t state : carried.states) states_[state] = values[next++];
  if (!carried.draws.empty()) round_ = values[next++];
}

void BodyLowering::number_round(const std::map<DrawSpace, LoopDraws>& draws, ValueId round) {
  for (const auto& [space, counts] : draws) {
    const ValueId before = emit_.map(ScalarOp::mul, round, num_draws(counts.of_round));
    const auto [at, is_first] = draws_of_rounds_.try_emplace(space, before);
    if (!is_first) at->second = emit_.map(ScalarOp::add, at->second, before);
  }
}

void BodyLowering::number_after(const std::map<DrawSpace, LoopDraws>& draws,
                                const std::map<DrawSpace, HostExprId>& before) {
  HostExprPool& pool = emit_.exprs();
  for (const auto& [space, counts] : draws) {
    const auto earlier = before.find(space);
    draws_of_loops_[space] = earlier == before.end()
                                 ? counts.beyond_sites
                                 : pool.add(earlier->second, counts.beyond_sites);
  }
}

RegionId BodyLowering::lower_region(const Carried& carried,
                                    const std::function<std::vector<ValueId>()>& body) {
  auto vars = mapped<Lowered>(carried.vars, [&](VarId var) { return vars_[var.index()]; });
  const std::vector<ValueId> states = states_;
  const auto counts = counts_;
  const auto draws_of_rounds = draws_of_rounds_;
  const ValueId round = round_;
  const RegionId region = emit_.open_region();
  emit_.close_region(body());
  for (std::size_t i = 0; i < vars.size(); ++i) vars_[carried.vars[i].index()] = vars[i];
  states_ = states;
  counts_ = counts;
  draws_of_rounds_ = draws_of_rounds;
  round_ = round;
  return region;
}

std::vector<ValueId> BodyLowering::branch_results(ExprId branch, const Carried& carried,
                                                  const Type* type) {
  Lowered result;
  if (branch) result = gives_value(branch) ? value(branch) : lower(expr(branch));
  std::vector<ValueId> yields = current(carried);
  if (type != nullptr) yields.insert(yields.begin(), emit_.fit(result.id, *type));
  return yields;
}

Lowered BodyLowering::lower_if(const Expr& e) {
  if (lanes_.rank != 0 || in_combiner_) return lower_lane_if(e);
  const ValueId condition = uniform(e.args.at(0));
  const ExprId otherwise = e.args.size() > 2 ? e.args[2] : ExprId();
  const bool has_value = otherwise && gives_value(e.args[1]) && gives_value(otherwise);
  const Type* type = has_value ? &e.type : nullptr;
  const Carried carried = carried_of({e.args[1], otherwise});
  std::vector<Type> types = emit_.types_of(current(carried));
  if (has_value) types.insert(types.begin(), e.type);
  const auto lower_branch = [&](ExprId branch) {
    return lower_region(carried, [&] { return branch_results(branch, carried, type); });
  };
  const RegionId then = lower_branch(e.args[1]);
  const RegionId otherwise_region = lower_branch(otherwise);
  std::vector<ValueId> results =
      emit_.emit_multi(OpKind::if_else, {condition}, types, {}, {then, otherwise_region});
  Lowered result;
  if (has_value) {
    result = {results[0]};
    results.erase(results.begin());
  }
  set_current(carried, results);
  return result;
}

std::vector<ValueId> BodyLowering::enter_args(const Carried& carried,
                                              const std::vector<ValueId>& inits) {
  auto args = emit_.add_args(emit_.region(), emit_.types_of(inits));
  set_current(carried, args);
  number_round(carried.draws, round_);
  return args;
}

std::vector<ValueId> BodyLowering::loop_body_results(ExprId body, const Carried& carried) {
  lower(expr(body));
  if (!carried.draws.empty()) {
    round_ = emit_.map(ScalarOp::add, round_, emit_.constant_int(kI64, 1));
  }
  return current(carried);
}

void BodyLowering::lower_for(const Stmt& s) {
  const Carried carried = carried_of({s.expr});
  const std::vector<ValueId> inits = current(carried);
  const auto draws = loop_draws(checked_, s, emit_.exprs());
  const auto draws_before = draws_of_loops_;
  const RegionId body = lower_region(carried, [&] {
    const ValueId i = emit_.add_arg(emit_.region(), scalar_type(kI64));
    vars_[s.var.index()] = {i};
    emit_.name(i, checked_.vars[s.var.index()].name);
    enter_args(carried, inits);
    if (!draws.empty()) {
      number_round(draws, emit_.map(ScalarOp::sub, i, host_scalar(s.size, kI64)));
    }
    return loop_body_results(s.expr, carried);
  });
  set_current(carried, emit_.emit_multi(OpKind::for_loop, inits, emit_.types_of(inits),
                                        {.size = s.size, .size2 = s.size2}, {body}));
  number_after(draws, draws_before);
}

void BodyLowering::lower_while(const Stmt& s) {
  if (lanes_.rank != 0) return lower_lane_while(s);
  const ValueId outer_round = round_;
  const Carried carried = carried_of_while(s);
  const std::vector<ValueId> inits = current(carried);
  const auto draws_before = draws_of_loops_;
  const RegionId condition = lower_region(carried, [&] {
    enter_args(carried, inits);
    return std::vector<ValueId>{uniform(s.expr2)};
  });
  const RegionId body = lower_region(carried, [&] {
    enter_args(carried, inits);
    return loop_body_results(s.expr, carried);
  });
  set_current(carried, emit_.emit_multi(OpKind::while_loop, inits, emit_.types_of(inits),
                                        {.size = s.size}, {condition, body}));
  round_ = outer_round;
  number_after(carried.draws, draws_before);
}

// ControlLowering: branches and loops on values that differ from element to element.

// From here on only lanes that were active and meet the condition are active.
void BodyLowering::activate(Lowered condition) {
  std::optional<Lowered>& active = lanes_.active;
  if (!active) {
    active = condition;
    return;
  }
  const Type flag = scalar_type(kBool);
  const std::uint8_t lanes = std::max(condition.lanes, active->lanes);
  const ValueId both =
      emit_.map(ScalarOp::bit_and, aligned(*active, flag, lanes), aligned(condition, flag, lanes));
  active = Lowered{both, lanes};
}

Lowered BodyLowering::lower_lane_if(const Expr& e) {
  const Lowered condition = value(e.args.at(0));
  const ExprId otherwise = e.args.size() > 2 ? e.args[2] : ExprId();
  const bool has_value = otherwise && gives_value(e.args[1]) && gives_value(otherwise);
  const Carried carried = carried_of({e.args[1], otherwise});
  const std::optional<Lowered> outer_active = lanes_.active;
  const auto lower_branch = [&](ExprId branch, Lowered reached) {
    std::vector<Lowered> before, after;
    for (VarId var : carried.vars) before.push_back(vars_[var.index()]);
    activate(reached);
    after.push_back(branch ? lower(expr(branch)) : Lowered{});
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

// All lanes iterate together; a lane whose condition has failed keeps its values from then on.
void BodyLowering::lower_lane_while(const Stmt& s) {
  const Type flag = scalar_type(kBool);
  const ValueId outer_round = round_;
  const auto draws_before = draws_of_loops_;
  const Carried carried = carried_of_while(s);
  const std::uint8_t lanes = lanes_.rank;
  const std::optional<Lowered> outer_active = lanes_.active;
  std::vector<ValueId> inits = current(carried);
  const Lowered start = outer_active.value_or(Lowered{emit_.constant_int(kBool, 1)});
  inits.push_back(full(start, flag, lanes));
  const auto enter = [&] {
    auto args = emit_.add_args(emit_.region(), emit_.types_of(inits));
    set_current(carried, args);
    number_round(carried.draws, round_);
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
  std::vector<ValueId> results = emit_.emit_multi(OpKind::while_loop, inits, emit_.types_of(inits),
                                                  {.size = s.size}, {condition, body});
  results.pop_back();
  set_current(carried, results);
  round_ = outer_round;
  number_after(carried.draws, draws_before);
}

}  // namespace cinch::lower
