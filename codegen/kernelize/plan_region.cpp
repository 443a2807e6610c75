// The planner of plan_region.h: what is alive, sinks in the order of the region, rounds of chosen
// stores.
#include "codegen/kernelize/plan_region.h"

#include <algorithm>
#include <map>

#include "codegen/kernelize/choose_stores.h"
#include "codegen/kernelize/planner.h"
#include "codegen/kernelize/repeated_work.h"
#include "codegen/kernelize/walk_pulls.h"
#include "compiler/ir/ops.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using ir::OpKind;
using ir::ValueId;

Planner::Planner(FunctionContext& cx, ir::RegionId region,
                 const std::vector<StoreRequest>& requests, const std::vector<ValueId>& chosen)
    : cx_(cx), pc_(cx.program), region_(region) {
  for (const auto& r : requests) requests_[r.value.index()].push_back(r);
  for (const auto v : chosen) chosen_.insert(v.index());
}

RegionPlan Planner::run(bool flag_nonfinite) {
  const auto ops =
      region_.is_valid() ? cx_.fn.regions[region_.index()].ops : std::vector<ir::OpId>();
  mark_live(ops);
  for (std::size_t i = 0; i < ops.size(); ++i) order_[ops[i].index()] = i;
  for (const auto op_id : ops) {
    if (!live_.contains(op_id.index())) continue;
    if (ir::is_sweep(cx_.op(op_id).kind)) add_barrier(op_id);
    for (const auto result : cx_.op(op_id).results) {
      add_requested_stores(result);
      if (chosen_.contains(result.index())) add_chosen_store(result);
    }
  }
  // What is asked for but defined outside: region arguments of an outer loop, outer values.
  for (auto& [value, unused] : std::map(requests_.begin(), requests_.end())) {
    add_requested_stores(ValueId(std::size_t{value}));
  }
  if (flag_nonfinite) add_nonfinite();
  group();
  return std::move(plan_);
}

void Planner::mark_live(const std::vector<ir::OpId>& ops) {
  for (const auto op_id : ops) {
    const auto& op = cx_.op(op_id);
    if (op.kind == OpKind::nonzero) finds_count_[op.attrs.index] = op_id;
  }
  std::vector<ValueId> work;
  work.reserve(requests_.size());
  for (const auto& [value, unused] : requests_) work.emplace_back(std::size_t{value});
  for (const auto op_id : ops) {
    if (has_checks(op_id)) mark_op(op_id, work);
  }
  while (!work.empty()) {
    const auto v = work.back();
    work.pop_back();
    mark_op(cx_.value(v).def, work);
  }
}

void Planner::mark_op(ir::OpId op_id, std::vector<ValueId>& work) {
  if (!live_.insert(op_id.index()).second) return;
  for_each_used_value(cx_.fn, op_id, [&](ValueId v) { work.push_back(v); });
  const auto& op = cx_.op(op_id);
  mark_counts(op.attrs.size, work);
  if (op.kind == OpKind::count_value) mark_count(op.attrs.index, work);
  for (const auto r : op.results) {
    for (int d = 0; d < type(r).rank; ++d) mark_counts(type(r).dims[d], work);
  }
}

// Who uses a size known only after looking needs the selection that finds it.
void Planner::mark_counts(HostExprId size, std::vector<ValueId>& work) {
  for (const auto count : pc_.exprs().counts_of(size)) mark_count(count, work);
}

void Planner::mark_count(std::uint64_t count, std::vector<ValueId>& work) {
  const auto found = finds_count_.find(count);
  if (found != finds_count_.end()) work.push_back(cx_.op(found->second).results[0]);
}

bool Planner::has_checks(ir::OpId op_id) const {
  const auto& op = cx_.op(op_id);
  if (ir::op_info(op.kind).effect == ir::Effect::Check) return true;
  for (const auto r : op.regions) {
    for (const auto inner : cx_.fn.regions[r.index()].ops) {
      if (has_checks(inner)) return true;
    }
  }
  return false;
}

std::vector<ir::OpId> Planner::users_after(ValueId v, ir::OpId op_id) const {
  std::vector<ir::OpId> users;
  if (!region_.is_valid()) return users;
  for (const auto id : cx_.fn.regions[region_.index()].ops) {
    if (!live_.contains(id.index()) || order_.at(id.index()) <= order_.at(op_id.index())) continue;
    bool uses = false;
    for_each_used_value(cx_.fn, id, [&](ValueId used) { uses |= used == v; });
    if (uses) users.push_back(id);
  }
  return users;
}

int Planner::add(Sink sink, const std::vector<std::pair<ValueId, Align>>& pulled) {
  const int id = static_cast<int>(plan_.sinks.size());
  plan_.sinks.push_back(std::move(sink));
  collect(id, pulled);
  place(id);
  return id;
}

void Planner::collect(int id, const std::vector<std::pair<ValueId, Align>>& pulled) {
  PullWalk walk{cx_, plan_, plan_.sinks[id].compaction, id};
  for (const auto& [v, align] : pulled) walk.visit(v, align);
  // A gather by the selection reads its source in place: the positions are still needed.
  if (walk.compaction >= 0) walk.add_dep(walk.compaction, Align::Selected);
  if (const auto op = plan_.sinks[id].op; op.is_valid()) {
    walk.visit_counts_of(op);
    for_each_combiner_value(cx_.fn, op, [&](ValueId v) { walk.visit(v, Align::None); });
  }
  plan_.sinks[id].deps = std::move(walk.deps);
}

void Planner::add_requested_stores(ValueId v) {
  const auto it = requests_.find(v.index());
  if (it == requests_.end()) return;
  const auto requests = std::move(it->second);
  requests_.erase(it);
  for (const auto& r : requests) {
    const auto lies = cx_.in_buffer.find(v.index());
    const bool is_there =
        lies != cx_.in_buffer.end() && lies->second == r.buffer && !r.adds_to_buffer;
    if (!is_there && !satisfied_.contains({v.index(), r.buffer})) add_store(r);
  }
}

void Planner::add_chosen_store(ValueId v) {
  if (plan_.stored.contains(v.index())) return;
  const auto scatter = scatter_onto(v);
  const auto buffer = scatter ? scatter_destination(*scatter) : add_room(v, "shared");
  const int store = add_store({v, buffer, false});
  if (scatter) base_stores_[scatter->index()] = store;
}

bool has_collective(const ir::Function& fn, ir::OpId op) {
  const ir::Op& held = fn.ops[op.index()];
  if (ir::is_collective(held.kind)) return true;
  return std::ranges::any_of(held.regions, [&](ir::RegionId region) {
    return std::ranges::any_of(fn.regions[region.index()].ops,
                               [&](ir::OpId inner) { return has_collective(fn, inner); });
  });
}

RegionPlan plan_region(FunctionContext& cx, ir::RegionId region,
                       const std::vector<StoreRequest>& requests, bool flag_nonfinite) {
  std::vector<ValueId> chosen = find_repeated_work(cx, region, requests);
  for (int round = 0; round < kMaxChosenStores; ++round) {
    const auto saved_buffers = cx.program.out.buffers.size();
    const auto saved_places = cx.in_buffer;
    auto plan = Planner(cx, region, requests, chosen).run(flag_nonfinite);
    const auto next = round + 1 < kMaxChosenStores ? choose_store(cx, region, plan) : std::nullopt;
    if (!next) return plan;
    cx.program.out.buffers.resize(saved_buffers);
    cx.in_buffer = saved_places;
    chosen.push_back(*next);
  }
  CINCH_BUG("unreachable: the last round returns");
}

}  // namespace cinch::codegen
