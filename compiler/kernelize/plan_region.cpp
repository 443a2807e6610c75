// The planner of a region: which operators must run, sinks in the order of the region, and those of
// one level and domain as kernels.
#include <algorithm>
#include <climits>
#include <numeric>

#include "compiler/ir/ops.h"
#include "compiler/kernelize/walk_pulls.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
using ir::OpKind;
using ir::ValueId;

namespace {

bool has_checks(const FunctionContext& cx, ir::OpId op_id) {
  const auto& op = cx.op(op_id);
  if (ir::op_info(op.kind).effect == ir::Effect::Check) return true;
  return std::ranges::any_of(op.regions, [&](ir::RegionId region) {
    return std::ranges::any_of(cx.fn.regions[region.index()].ops,
                               [&](ir::OpId inner) { return has_checks(cx, inner); });
  });
}

class Liveness {
 public:
  Liveness(const FunctionContext& cx, const std::vector<ir::OpId>& ops, std::vector<ValueId> wanted)
      : cx_(cx), ops_(ops), work_(std::move(wanted)) {}

  std::set<std::uint32_t> find() {
    for (const auto op_id : ops_) {
      const auto& op = cx_.op(op_id);
      // The first op that finds a count comes before all uses of it.
      if (op.kind == OpKind::nonzero) finds_count_.try_emplace(op.attrs.index, op_id);
    }
    for (const auto op_id : ops_) {
      if (has_checks(cx_, op_id)) mark(op_id);
    }
    while (!work_.empty()) {
      const auto v = work_.back();
      work_.pop_back();
      mark(cx_.value(v).def);
    }
    return std::move(live_);
  }

 private:
  void mark(ir::OpId op_id) {
    if (!live_.insert(op_id.index()).second) return;
    for_each_used_value(cx_.fn, op_id, [&](ValueId v) { work_.push_back(v); });
    const auto& op = cx_.op(op_id);
    mark_counts(op.attrs.size);
    if (op.kind == OpKind::count_value) mark_count(op.attrs.index);
    for (const auto r : op.results) {
      const ir::Type& type = cx_.value(r).type;
      for (int d = 0; d < type.rank; ++d) mark_counts(type.dims[d]);
    }
  }
  // A use of a counted size needs the selection that finds the count.
  void mark_counts(HostExprId size) {
    for (const auto count : cx_.program.exprs().counts_of(size)) mark_count(count);
  }
  void mark_count(std::uint64_t count) {
    const auto found = finds_count_.find(count);
    if (found != finds_count_.end()) work_.push_back(cx_.op(found->second).results[0]);
  }

  const FunctionContext& cx_;
  const std::vector<ir::OpId>& ops_;
  std::vector<ValueId> work_;
  std::set<std::uint32_t> live_;
  std::unordered_map<std::uint64_t, ir::OpId> finds_count_;  // count -> its first nonzero
};

}  // namespace

Planner::Planner(FunctionContext& cx, ir::RegionId region,
                 const std::vector<StoreRequest>& requests, const std::vector<ValueId>& chosen,
                 std::size_t num_long)
    : cx_(cx), pc_(cx.program) {
  if (region.is_valid()) ops_ = cx_.fn.regions[region.index()].ops;
  for (const auto& r : requests) {
    requests_[r.value.index()].push_back(r);
    if (r.is_behind_checks) behind_checks_.insert(r.buffer);
  }
  if (!behind_checks_.empty()) put_checks_first();
  for (std::size_t i = 0; i < ops_.size(); ++i) order_[ops_[i].index()] = i + 1;
  for (const auto v : chosen) chosen_.insert(v.index());
  for (std::size_t i = 0; i < num_long; ++i) plan_.long_work.insert(chosen[i].index());
}

void Planner::put_checks_first() {
  const std::set<std::uint32_t> needed = Liveness(cx_, ops_, {}).find();
  if (needed.empty()) return behind_checks_.clear();
  std::ranges::stable_partition(ops_, [&](ir::OpId op) { return needed.contains(op.index()); });
}

bool Planner::is_behind_checks(const Sink& s) const {
  return behind_checks_.contains(s.buffer) ||
         std::ranges::any_of(s.results, [&](auto b) { return behind_checks_.contains(b); });
}

bool Planner::holds_check(const Sink& s) const {
  return s.op.is_valid() && has_checks(cx_, s.op);
}

RegionPlan Planner::run(bool flag_nonfinite) {
  std::vector<ValueId> wanted;
  wanted.reserve(requests_.size());
  for (const auto& [value, unused] : requests_) wanted.emplace_back(std::size_t{value});
  live_ = Liveness(cx_, ops_, std::move(wanted)).find();
  find_last_reads();
  for (const auto op_id : ops_) {
    if (!live_.contains(op_id.index())) continue;
    if (ir::is_sweep(cx_.op(op_id).kind)) add_sink_of(op_id);
    for (const auto result : cx_.op(op_id).results) {
      add_requested_stores(result);
      if (!chosen_.contains(result.index()) || plan_.stored.contains(result.index())) continue;
      // Stores of long work need no permission: without them, compiling would take too long.
      if (plan_.long_work.contains(result.index()) || pc_.steps.may_take())
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
  if (is_behind_checks(plan_.sinks[id])) {
    for (int check = 0; check < id; ++check) {
      if (holds_check(plan_.sinks[check]))
        walk.edges.push_back({.from = check, .kind = Edge::Kind::Check});
    }
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

// Planner: sinks of one level and domain become kernels; vectors join kernels over their rows.

static bool holds(const KernelPlan& kernel, int sink) {
  return std::ranges::find(kernel.sinks, sink) != kernel.sinks.end();
}

bool is_flat_view(ProgramContext& pc, HostExprId extent, const Domain& rows) {
  if (!extent || rows.kind != kir::GroupKind::Row) return false;
  auto& pool = pc.exprs();
  return pool.mul(rows.rows, rows.cols) == extent ||
         pool.ceil_div(extent, rows.cols) == rows.rows;  // the last row may be shorter
}

const Domain& kernel_domain(const RegionPlan& plan, const Sink& sink) {
  return sink.compaction >= 0 ? plan.sinks[sink.compaction].domain : sink.domain;
}

void Planner::group() {
  const auto unit = units();
  std::unordered_map<int, std::size_t> kernel_of;  // by unit
  for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
    const auto& s = plan_.sinks[id];
    if (s.kind == SinkKind::NonFinite) continue;
    auto at = kernel_of.find(unit[id]);
    if (at == kernel_of.end()) {
      KernelPlan* shared = stands_alone(s.kind) ? nullptr : find_kernel(s.level, kernel_domain(s));
      if (shared == nullptr || !pc_.steps.may_take()) {
        plan_.kernels.push_back({kernel_domain(s), s.level, {}});
        shared = &plan_.kernels.back();
      }
      at = kernel_of.emplace(unit[id], shared - plan_.kernels.data()).first;
    }
    plan_.kernels[at->second].sinks.push_back(id);
  }
  join_rows();
  delay_stores();
  // A sink never needs a later one at its own level, so the order of first sinks breaks ties
  // stably.
  std::sort(plan_.kernels.begin(), plan_.kernels.end(),
            [](const KernelPlan& a, const KernelPlan& b) {
              return std::pair(a.level, a.sinks.front()) < std::pair(b.level, b.sinks.front());
            });
  for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
    if (plan_.sinks[id].kind == SinkKind::NonFinite) host_nonfinite(id);
  }
}

std::vector<int> Planner::units() const {
  std::vector<int> unit(plan_.sinks.size());
  std::iota(unit.begin(), unit.end(), 0);
  const auto find = [&](int id) {
    while (unit[id] != id) id = unit[id] = unit[unit[id]];
    return id;
  };
  for (int id = 0; id < static_cast<int>(unit.size()); ++id) {
    for (const auto& e : plan_.sinks[id].edges) {
      const bool is_here =
          e.is_on_chip && kernel_domain(plan_.sinks[id]) == kernel_domain(plan_.sinks[e.from]);
      if (is_here) unit[find(id)] = find(e.from);
    }
  }
  for (int id = 0; id < static_cast<int>(unit.size()); ++id) unit[id] = find(id);
  return unit;
}

KernelPlan* Planner::find_kernel(int level, const Domain& domain) {
  for (auto& k : plan_.kernels) {
    if (k.level == level && k.domain == domain && !stands_alone(plan_.sinks[k.sinks[0]].kind))
      return &k;
  }
  return nullptr;
}

void Planner::join_rows() {
  for (auto& rows : plan_.kernels) {
    if (rows.domain.kind != kir::GroupKind::Row) continue;
    for (auto& tiles : plan_.kernels) {
      if (tiles.domain.kind != kir::GroupKind::Tile || tiles.level != rows.level ||
          tiles.sinks.empty())
        continue;
      const bool only_stores = std::all_of(tiles.sinks.begin(), tiles.sinks.end(), [&](int id) {
        return plan_.sinks[id].kind == SinkKind::Store && plan_.sinks[id].compaction < 0;
      });
      if (!only_stores || !is_flat_view(tiles.domain.extent, rows.domain)) continue;
      if (!pc_.steps.may_take()) continue;
      for (const int id : tiles.sinks) plan_.sinks[id].domain = rows.domain;
      rows.sinks.insert(rows.sinks.end(), tiles.sinks.begin(), tiles.sinks.end());
      tiles.sinks.clear();
    }
  }
  std::erase_if(plan_.kernels, [](const KernelPlan& k) { return k.sinks.empty(); });
}

KernelPlan* Planner::first_reader(const KernelPlan& stores) {
  // Kernels that come after the stores must stay after them; the first such kernels must take them
  // in.
  int level = INT_MAX;
  bool can_join = true;
  for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
    const auto& s = plan_.sinks[id];
    if (holds(stores, id) || s.level > level) continue;
    for (const auto& e : s.edges) {
      if (!holds(stores, e.from)) continue;
      if (s.level < level) can_join = true;
      level = s.level;
      can_join = can_join && e.kind == Edge::Kind::Value && e.align == Align::Flat &&
                 kernel_domain(s) == stores.domain && !stands_alone(s.kind);
    }
  }
  if (level == INT_MAX || level == stores.level || !can_join) return nullptr;
  return find_kernel(level, stores.domain);
}

void Planner::delay_stores() {
  for (auto& stores : plan_.kernels) {
    const bool only_stores_vectors =
        stores.domain.kind == kir::GroupKind::Tile &&
        std::ranges::all_of(stores.sinks, [&](int id) {
          const auto& s = plan_.sinks[id];
          return s.kind == SinkKind::Store && s.compaction < 0 && !s.is_row_level;
        });
    if (!only_stores_vectors) continue;
    KernelPlan* reader = first_reader(stores);
    if (reader == nullptr || !pc_.steps.may_take()) continue;
    for (const int id : stores.sinks) plan_.sinks[id].level = reader->level;
    for (const int id : reader->sinks) {
      for (auto& e : plan_.sinks[id].edges) e.is_on_chip = e.is_on_chip || holds(stores, e.from);
    }
    reader->sinks.insert(reader->sinks.begin(), stores.sinks.begin(), stores.sinks.end());
    stores.sinks.clear();
  }
  std::erase_if(plan_.kernels, [](const KernelPlan& k) { return k.sinks.empty(); });
}

void Planner::host_nonfinite(int id) {
  auto& s = plan_.sinks[id];
  const auto extent = s.domain.extent;
  for (auto& k : plan_.kernels) {
    const auto& first = plan_.sinks[k.sinks.front()];
    if (first.op.is_valid() && has_collective(cx_.fn, first.op)) break;
    const auto can_feed = [&](int other) {
      return plan_.sinks[other].kind != SinkKind::RowReduce || can_feed_rows(plan_.sinks[other]);
    };
    const bool fits = k.domain == s.domain ||
                      (k.domain.kind == kir::GroupKind::Row && is_flat_view(extent, k.domain) &&
                       std::ranges::all_of(k.sinks, can_feed));
    if (!fits || !pc_.steps.may_take()) continue;
    s.domain = k.domain;
    s.level = k.level;
    k.sinks.push_back(id);
    return;
  }
  plan_.kernels.insert(plan_.kernels.begin(), {s.domain, 0, {id}});
}

}  // namespace cinch::codegen
