// Planner: sinks of one level and domain become kernels; vectors join kernels over their rows.
#include <algorithm>
#include <climits>
#include <set>

#include "codegen/kernelize/planner.h"

namespace cinch::codegen {

using ir::OpKind;
using ir::ValueId;

void Planner::group() {
  for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
    const auto& s = plan_.sinks[id];
    if (s.kind == SinkKind::NonFinite) continue;
    KernelPlan* kernel = stands_alone(s.kind) ? nullptr : find_kernel(s.level, kernel_domain(s));
    if (kernel == nullptr) {
      plan_.kernels.push_back({kernel_domain(s), s.level, {}});
      kernel = &plan_.kernels.back();
    }
    kernel->sinks.push_back(id);
  }
  join_rows();
  delay_stores();
  // A sink never needs one behind it at its own level, so the order of first sinks is a stable
  // tie-break.
  std::sort(plan_.kernels.begin(), plan_.kernels.end(),
            [](const KernelPlan& a, const KernelPlan& b) {
              return std::pair(a.level, a.sinks.front()) < std::pair(b.level, b.sinks.front());
            });
  for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
    if (plan_.sinks[id].kind == SinkKind::NonFinite) host_nonfinite(id);
  }
}

KernelPlan* Planner::find_kernel(int level, const Domain& domain) {
  for (auto& k : plan_.kernels) {
    if (k.level == level && k.domain == domain && !stands_alone(plan_.sinks[k.sinks[0]].kind))
      return &k;
  }
  return nullptr;
}

bool Planner::is_flat_view(HostExprId extent, const Domain& rows) const {
  if (pc_.exprs().mul(rows.rows, rows.cols) == extent) return true;
  for (const auto& op : cx_.fn.ops) {
    if (op.kind != OpKind::chunk && op.kind != OpKind::unchunk) continue;
    const bool makes_rows = op.kind == OpKind::chunk;
    const auto& matrix = type(makes_rows ? op.results[0] : op.operands[0]);
    const auto& vector = type(makes_rows ? op.operands[0] : op.results[0]);
    if (matrix.dims[0] == rows.rows && matrix.dims[1] == rows.cols && vector.dims[0] == extent)
      return true;
  }
  return false;
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
  const auto is_own = [&](int id) {
    return std::find(stores.sinks.begin(), stores.sinks.end(), id) != stores.sinks.end();
  };
  // What the stores write, and what they read: a scatter works in the buffer of its base, a sort in
  // that of its keys, and neither may come before the stores.
  std::set<rt::BufferIndex> own;
  for (const int id : stores.sinks) {
    own.insert(plan_.sinks[id].buffer);
    for (const auto& d : plan_.sinks[id].deps) {
      const auto& read = plan_.sinks[d.sink];
      own.insert(read.buffer);
      own.insert(read.results.begin(), read.results.end());
    }
  }
  own.erase(rt::kNoIndex);
  const auto works_in_own = [&](const Sink& s) {
    return s.level > stores.level &&
           (own.contains(s.buffer) ||
            std::any_of(s.results.begin(), s.results.end(),
                        [&](rt::BufferIndex buffer) { return own.contains(buffer); }));
  };
  int level = INT_MAX, last_joint_level = INT_MAX;
  for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
    const auto& s = plan_.sinks[id];
    if (is_own(id)) continue;
    if (works_in_own(s)) last_joint_level = std::min(last_joint_level, s.level - 1);
    for (const auto& d : s.deps) {
      if (!is_own(d.sink)) continue;
      level = std::min(level, s.level);
      const bool can_join =
          d.align == Align::Flat && kernel_domain(s) == stores.domain && !stands_alone(s.kind);
      if (!can_join) last_joint_level = std::min(last_joint_level, s.level - 1);
    }
  }
  if (level == INT_MAX || level <= stores.level || level > last_joint_level) return nullptr;
  return find_kernel(level, stores.domain);
}

void Planner::delay_stores() {
  for (auto& stores : plan_.kernels) {
    if (!only_stores_vectors(stores)) continue;
    KernelPlan* reader = first_reader(stores);
    if (reader == nullptr) continue;
    for (const int id : stores.sinks) plan_.sinks[id].level = reader->level;
    for (const int id : reader->sinks) {
      for (auto& d : plan_.sinks[id].deps) {
        const bool is_stored_here =
            std::find(stores.sinks.begin(), stores.sinks.end(), d.sink) != stores.sinks.end();
        d.is_on_chip = d.is_on_chip || is_stored_here;
      }
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
    if (!fits) continue;
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
