// The planner of plan_region.h: adds sinks in the order of the region, and repeats with chosen
// stores.
#include "compiler/kernelize/plan_region.h"

#include <algorithm>
#include <map>

#include "compiler/ir/ops.h"
#include "compiler/kernelize/planner.h"
#include "compiler/kernelize/walk_pulls.h"

namespace cinch::codegen {

using ir::OpKind;
using ir::ValueId;

Planner::Planner(FunctionContext& cx, ir::RegionId region,
                 const std::vector<StoreRequest>& requests, const std::vector<ValueId>& chosen,
                 std::size_t num_long)
    : cx_(cx), pc_(cx.program) {
  if (region.is_valid()) ops_ = cx_.fn.regions[region.index()].ops;
  for (std::size_t i = 0; i < ops_.size(); ++i) order_[ops_[i].index()] = i + 1;
  for (const auto& r : requests) requests_[r.value.index()].push_back(r);
  for (const auto v : chosen) chosen_.insert(v.index());
  for (std::size_t i = 0; i < num_long; ++i) plan_.long_work.insert(chosen[i].index());
}

RegionPlan Planner::run(bool flag_nonfinite) {
  std::vector<ValueId> wanted;
  wanted.reserve(requests_.size());
  for (const auto& [value, unused] : requests_) wanted.emplace_back(std::size_t{value});
  live_ = find_live(cx_, ops_, std::move(wanted));
  find_last_reads();
  for (const auto op_id : ops_) {
    if (!live_.contains(op_id.index())) continue;
    if (ir::is_sweep(cx_.op(op_id).kind)) add_sink_of(op_id);
    for (const auto result : cx_.op(op_id).results) {
      add_requested_stores(result);
      if (is_worth_a_store(result))
        add_store({result, rt::kNoIndex, false}, name(result, "shared"));
    }
  }
  // Requested values that are defined outside: region arguments of an outer loop, outer values.
  for (auto& [value, unused] : std::map(requests_.begin(), requests_.end())) {
    add_requested_stores(ValueId(std::size_t{value}));
  }
  if (flag_nonfinite) add_nonfinite();
  group();
  return std::move(plan_);
}

// Stores of long work need no permission: without them, compiling would take too long.
bool Planner::is_worth_a_store(ValueId v) {
  if (!chosen_.contains(v.index()) || plan_.stored.contains(v.index())) return false;
  return plan_.long_work.contains(v.index()) || pc_.steps.may_take();
}

int Planner::add(Sink sink, const std::vector<std::pair<ValueId, Align>>& pulled) {
  const int id = static_cast<int>(plan_.sinks.size());
  if (sink.kind == SinkKind::Nonzero) plan_.finders_of[cx_.op(sink.op).attrs.index].push_back(id);
  plan_.sinks.push_back(std::move(sink));
  collect(id, pulled);
  place(id);
  return id;
}

void Planner::collect(int id, const std::vector<std::pair<ValueId, Align>>& pulled) {
  PullWalk walk{cx_, plan_, plan_.sinks[id].compaction, id, std::move(plan_.sinks[id].edges)};
  for (const auto& [v, align] : pulled) walk.visit(v, align);
  // A gather by the selection reads its source in place, but still needs the positions.
  if (walk.compaction >= 0) walk.add_edge(walk.compaction, Align::Selected);
  if (const auto op = plan_.sinks[id].op; op.is_valid()) {
    walk.visit_counts_of(op);
    for_each_combiner_value(cx_.fn, op, [&](ValueId v) { walk.visit(v, Align::None); });
  }
  plan_.sinks[id].edges = std::move(walk.edges);
}

void Planner::add_requested_stores(ValueId v) {
  const auto it = requests_.find(v.index());
  if (it == requests_.end()) return;
  const auto requests = std::move(it->second);
  requests_.erase(it);
  for (const auto& r : requests) {
    if (!lies_where_asked(r)) add_store(r);
  }
}

bool Planner::lies_where_asked(const StoreRequest& r) const {
  if (const auto outer = cx_.buffer_of(r.value)) return *outer == r.buffer && !r.adds_to_buffer;
  const auto made = plan_.sink_of_op.find(cx_.value(r.value).def.index());
  if (made == plan_.sink_of_op.end()) return false;
  const auto& s = plan_.sinks[made->second];
  const auto result = cx_.value(r.value).result_index;
  switch (s.kind) {
    case SinkKind::Scatter:
    case SinkKind::ScatterAdd:
    case SinkKind::ScatterSum:
      return s.buffer == r.buffer && s.adds_to_buffer == r.adds_to_buffer;
    case SinkKind::Nonzero:
      return result == 1 && s.buffer == r.buffer && !r.adds_to_buffer;
    case SinkKind::Control:
      return s.results[result] == r.buffer && !r.adds_to_buffer;
    default:
      return false;
  }
}

ir::ValueId held_value(const FunctionContext& cx, const Sink& sink) {
  return sink.value ? sink.value : cx.op(sink.op).results[0];
}

bool RegionPlan::lies_in_memory(const FunctionContext& cx, ir::ValueId v) const {
  if (stored.contains(v.index())) return true;
  const auto made = sink_of_op.find(cx.value(v).def.index());
  if (made == sink_of_op.end()) return false;
  const auto kind = sinks[made->second].kind;
  return !is_store_of_barrier_possible(kind) ||
         (kind == SinkKind::Nonzero && cx.value(v).result_index == 1);
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
  const std::size_t num_long = chosen.size();
  const rt::StepLimit before = cx.program.steps;
  for (int round = 0;; ++round) {
    cx.program.steps = before;  // counts only the last plan
    auto plan = Planner(cx, region, requests, chosen, num_long).run(flag_nonfinite);
    const auto next = round + 1 < kMaxChosenStores ? choose_store(cx, region, plan) : std::nullopt;
    if (next) {
      chosen.push_back(*next);
      continue;
    }
    give_places(cx, plan);
    return plan;
  }
}

}  // namespace cinch::codegen
