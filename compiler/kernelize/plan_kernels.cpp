// Planner: sinks of one level and domain become kernels; vectors join kernels over their rows.
#include <algorithm>
#include <climits>
#include <numeric>

#include "compiler/kernelize/planner.h"

namespace cinch::codegen {
namespace {

bool holds(const KernelPlan& kernel, int sink) {
  return std::ranges::find(kernel.sinks, sink) != kernel.sinks.end();
}

}  // namespace

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

bool Planner::only_stores_vectors(const KernelPlan& kernel) const {
  return kernel.domain.kind == kir::GroupKind::Tile &&
         std::all_of(kernel.sinks.begin(), kernel.sinks.end(), [&](int id) {
           const auto& s = plan_.sinks[id];
           return s.kind == SinkKind::Store && s.compaction < 0 && !s.is_row_level;
         });
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
    if (!only_stores_vectors(stores)) continue;
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
    const bool fits =
        k.domain == s.domain || (k.domain.kind == kir::GroupKind::Row &&
                                 is_flat_view(extent, k.domain) && can_feed_rows_kernel(k));
    if (!fits || !pc_.steps.may_take()) continue;
    s.domain = k.domain;
    s.level = k.level;
    k.sinks.push_back(id);
    return;
  }
  plan_.kernels.insert(plan_.kernels.begin(), {s.domain, 0, {id}});
}

bool Planner::can_feed_rows_kernel(const KernelPlan& k) const {
  return std::none_of(k.sinks.begin(), k.sinks.end(), [&](int id) {
    return plan_.sinks[id].kind == SinkKind::RowReduce && !can_feed_rows(plan_.sinks[id]);
  });
}

}  // namespace cinch::codegen
