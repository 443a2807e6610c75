// Statements and control flow. A branch or loop body is a region; what it assigns comes out as
// results of the if_else or goes round as loop-carried values, so that the function is in SSA form.
#include <utility>

#include "compiler/lower/body_lowering.h"
#include "compiler/lower/draws.h"
#include "runtime/core/check.h"

namespace cinch::lower {

void BodyLowering::lower_statement(const Stmt& s) {
  emit_.set_span(s.span);
  switch (s.kind) {
    case StmtKind::Let:
    case StmtKind::Assign:
      return assign(s);
    case StmtKind::AssignState:
      states_[s.index] = emit_.fit(uniform(s.expr), out_.info.states[s.index].type);
      emit_.name(states_[s.index], out_.info.states[s.index].name);
      return;
    case StmtKind::AssignIndexed:
      return lower_assign_indexed(s);
    case StmtKind::For:
      return lower_for(s);
    case StmtKind::While:
      return lanes_.rank == 0 ? lower_while(s) : lower_lane_while(s);
    case StmtKind::Expr:
      if (gives_value(s.expr)) {
        value(s.expr);
      } else {
        lower_kind(expr(s.expr));
      }
      return;
    case StmtKind::Assert:
      return lower_assert(s);
    case StmtKind::LetPayload:
      return lower_let_payload(s);
    case StmtKind::CheckHost:
      return emit_.check_host(s.size, located(s.span, s.text));
  }
  CINCH_BUG("a statement of no kind");
}

void BodyLowering::assign(const Stmt& s) {
  Lowered v = value(s.expr);
  const sema::Var& var = checked_.vars[s.var.index()];
  v.id = emit_.convert(v.id, var.type.dtype);
  if (v.lanes == 0) v.id = emit_.spread(v.id, var.type);
  vars_[s.var.index()] = v;
  emit_.name(v.id, var.name);
}

// What the inner decode will see: the fields as the wire holds them.
void BodyLowering::lower_let_payload(const Stmt& s) {
  std::vector<ValueId> fields = lower_payload(s.expr);
  const sema::Var& var = checked_.vars[s.var.index()];
  CINCH_CHECK(fields.size() == var.field_types.size(), "one value per wire field");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i] = emit_.fit(fields[i], var.field_types[i]);
  }
  payloads_[s.var] = std::move(fields);
}

void BodyLowering::lower_assert(const Stmt& s) {
  const Lowered condition = value(s.expr2);
  ValueId holds = condition.id;
  if (lanes_.active) {
    const std::uint8_t lanes = std::max(condition.lanes, lanes_.active->lanes);
    const ValueId inactive =
        emit_.map(ScalarOp::bit_not, aligned(*lanes_.active, scalar_type(kBool), lanes));
    holds = emit_.map(ScalarOp::bit_or, aligned(condition, scalar_type(kBool), lanes), inactive);
  }
  check_all(holds, located(s.span, s.text));
}

// A branch carries a draw space only where a loop inside it draws: without one its sites are all
// that counts.
BodyLowering::Carried BodyLowering::carried_of(const std::vector<ExprId>& roots, bool is_loop) {
  Assigned assigned = find_assigned(checked_, roots);
  Carried carried{std::move(assigned.vars), std::move(assigned.states), {}};
  for (const Draw& draw : assigned.draws) {
    const Expr& e = expr(draw.expr);
    if ((is_loop || draw.in_loop) && !e.stream) ++carried.draws[draw_space(e)];
  }
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
  for (const auto& [space, num_sites] : carried.draws) {
    const auto found = draw_offsets_.find(space);
    values.push_back(found != draw_offsets_.end() ? found->second : emit_.constant_int(kI64, 0));
  }
  return values;
}

void BodyLowering::set_current(const Carried& carried, const std::vector<ValueId>& values) {
  std::size_t next = 0;
  for (VarId var : carried.vars) {
    vars_[var.index()] = {values[next], lanes_.rank};
    emit_.name(values[next++], checked_.vars[var.index()].name);
  }
  for (std::uint32_t state : carried.states) states_[state] = values[next++];
  for (const auto& [space, num_sites] : carried.draws) draw_offsets_[space] = values[next++];
}

RegionId BodyLowering::lower_region(const Carried& carried,
                                    const std::function<std::vector<ValueId>()>& body) {
  std::vector<Lowered> vars;
  vars.reserve(carried.vars.size());
  for (VarId var : carried.vars) vars.push_back(vars_[var.index()]);
  const std::vector<ValueId> states = states_;
  const auto counts = counts_;
  const auto draw_offsets = draw_offsets_;
  const RegionId region = emit_.open_region();
  emit_.close_region(body());
  for (std::size_t i = 0; i < vars.size(); ++i) vars_[carried.vars[i].index()] = vars[i];
  states_ = states;
  counts_ = counts;
  draw_offsets_ = draw_offsets;
  return region;
}

std::vector<ValueId> BodyLowering::branch_results(ExprId branch, const Carried& carried,
                                                  const Type* type) {
  Lowered result;
  if (branch) result = gives_value(branch) ? value(branch) : lower_kind(expr(branch));
  std::vector<ValueId> yields = current(carried);
  if (type != nullptr) yields.insert(yields.begin(), emit_.fit(result.id, *type));
  return yields;
}

namespace {

std::vector<Type> types_of(const Emitter& emit, const std::vector<ValueId>& values) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (ValueId value : values) types.push_back(emit.type(value));
  return types;
}

}  // namespace

Lowered BodyLowering::lower_if(const Expr& e) {
  if (lanes_.rank != 0 || in_combiner_) return lower_lane_if(e);
  const ValueId condition = uniform(e.args.at(0));
  const ExprId otherwise = e.args.size() > 2 ? e.args[2] : ExprId();
  const bool has_value = otherwise && gives_value(e.args[1]) && gives_value(otherwise);
  const Type* type = has_value ? &e.type : nullptr;
  const Carried carried = carried_of({e.args[1], otherwise}, false);
  std::vector<Type> types = types_of(emit_, current(carried));
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
  std::vector<ValueId> args;
  args.reserve(inits.size());
  for (ValueId init : inits) args.push_back(emit_.add_arg(emit_.region(), emit_.type(init)));
  set_current(carried, args);
  return args;
}

std::vector<ValueId> BodyLowering::loop_body_results(ExprId body, const Carried& carried) {
  lower_kind(expr(body));
  for (const auto& [space, num_sites] : carried.draws) {
    draw_offsets_[space] =
        emit_.map(ScalarOp::add, draw_offsets_[space], emit_.constant_int(kI64, num_sites));
  }
  return current(carried);
}

// Sites behind the loop count its own sites once already. Where the condition draws, it drew once
// more than the body.
void BodyLowering::leave_loop(const Carried& carried, const std::vector<ValueId>& results,
                              const std::vector<ExprId>& drawn_again) {
  set_current(carried, results);
  const Assigned again = find_assigned(checked_, drawn_again);
  for (const auto& [space, num_sites] : carried.draws) {
    std::int64_t counted = num_sites;
    for (const Draw& draw : again.draws) {
      if (draw_space(expr(draw.expr)) == space && !expr(draw.expr).stream) --counted;
    }
    draw_offsets_[space] =
        emit_.map(ScalarOp::sub, draw_offsets_[space], emit_.constant_int(kI64, counted));
  }
}

void BodyLowering::lower_for(const Stmt& s) {
  const Carried carried = carried_of({s.expr}, true);
  const std::vector<ValueId> inits = current(carried);
  const RegionId body = lower_region(carried, [&] {
    const ValueId i = emit_.add_arg(emit_.region(), scalar_type(kI64));
    vars_[s.var.index()] = {i};
    emit_.name(i, checked_.vars[s.var.index()].name);
    enter_args(carried, inits);
    return loop_body_results(s.expr, carried);
  });
  ir::Attrs attrs;
  attrs.size = s.size;
  attrs.size2 = s.size2;
  leave_loop(carried,
             emit_.emit_multi(OpKind::for_loop, inits, types_of(emit_, inits), attrs, {body}), {});
}

void BodyLowering::lower_while(const Stmt& s) {
  const Carried carried = carried_of({s.expr2, s.expr}, true);
  const std::vector<ValueId> inits = current(carried);
  const RegionId condition = lower_region(carried, [&] {
    enter_args(carried, inits);
    return std::vector<ValueId>{uniform(s.expr2)};
  });
  const RegionId body = lower_region(carried, [&] {
    enter_args(carried, inits);
    return loop_body_results(s.expr, carried);
  });
  ir::Attrs attrs;
  attrs.size = s.size;
  leave_loop(
      carried,
      emit_.emit_multi(OpKind::while_loop, inits, types_of(emit_, inits), attrs, {condition, body}),
      {s.expr2});
}

}  // namespace cinch::lower
