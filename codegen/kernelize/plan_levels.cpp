// Planner: which kernel a sink can share with what it reads, and the level that follows.
#include <algorithm>

#include "codegen/kernelize/planner.h"

namespace cinch::codegen {

using ir::OpKind;
using ir::ValueId;

bool is_store_of_barrier_possible(SinkKind kind) {
  return kind == SinkKind::RowReduce || kind == SinkKind::RowTransform ||
         kind == SinkKind::RunningSum || kind == SinkKind::Nonzero;
}

bool stands_alone(SinkKind kind) {
  return kind == SinkKind::Scan || kind == SinkKind::ScatterAdd || kind == SinkKind::Argsort ||
         kind == SinkKind::CheckHost || kind == SinkKind::CheckUnique ||
         kind == SinkKind::Control || kind == SinkKind::Collective || kind == SinkKind::Kept;
}

void Planner::raise_level(int id, int level) {
  if (plan_.sinks[id].level >= level) return;
  auto deps = plan_.sinks[id].deps;
  settle(id, deps, level);
}

int Planner::stored_form(int sink, std::uint32_t result) {
  const auto kind = plan_.sinks[sink].kind;
  if (!is_store_of_barrier_possible(kind)) return sink;
  const auto v = cx_.op(plan_.sinks[sink].op).results[result];
  if (const auto it = plan_.stored.find(v.index()); it != plan_.stored.end()) {
    return it->second;
  }
  return add_store({v, add_room(v, "kept"), false});
}

bool Planner::can_share_kernel(const Sink& s, const Dep& d) const {
  const auto& t = plan_.sinks[d.sink];
  switch (t.kind) {
    case SinkKind::RowReduce:
      if (d.align == Align::Row) return can_feed_rows(t) && can_run_in_rows(s, t.domain);
      return d.align == Align::Flat && s.kind == SinkKind::Store && s.compaction < 0 &&
             !pc_.is_packed(s.buffer) && pc_.num_elems(type(s.value)) == t.domain.rows;
    case SinkKind::RowTransform:
      return d.align == Align::Flat && can_run_in_rows(s, t.domain);
    case SinkKind::RunningSum:
      return d.align == Align::Flat && kernel_domain(s) == t.domain && !stands_alone(s.kind);
    case SinkKind::Nonzero:
      return s.compaction == d.sink && d.align == Align::Selected;
    case SinkKind::Store:
      if (t.compaction >= 0) return s.compaction == t.compaction && d.align == Align::Selected;
      // What is stored per row is there for the elements of that row.
      if (t.is_row_level) return d.align == Align::Row && can_run_in_rows(s, t.domain);
      return d.align == Align::Flat && !stands_alone(s.kind) &&
             (kernel_domain(s) == t.domain || can_join_rows(s, t.domain) ||
              ((s.kind == SinkKind::RowReduce || s.kind == SinkKind::RowTransform) &&
               can_repeat_in_rows(t, s.domain)));
    default:
      return false;
  }
}

bool Planner::can_feed_rows(const Sink& t) const {
  const auto& op = cx_.op(t.op);
  return op.kind == OpKind::reduce && op.attrs.axis == 1;
}

bool Planner::can_run_in_rows(const Sink& s, const Domain& rows) const {
  if (s.kind == SinkKind::RowReduce) return s.domain == rows && can_feed_rows(s);
  if (s.kind == SinkKind::RowTransform) return s.domain == rows;
  return s.kind == SinkKind::Store && s.compaction < 0 &&
         (s.domain == rows || is_flat_view(s.domain.extent, rows));
}

bool Planner::can_join_rows(const Sink& s, const Domain& rows) const {
  return rows.kind == kir::GroupKind::Row && s.domain.kind == kir::GroupKind::Tile &&
         can_run_in_rows(s, rows);
}

bool Planner::can_repeat_in_rows(const Sink& stored, const Domain& rows) const {
  return stored.kind == SinkKind::Store && stored.compaction < 0 && stored.phase == 0 &&
         stored.domain.kind == kir::GroupKind::Tile && is_flat_view(stored.domain.extent, rows);
}

void Planner::place(int id) {
  std::vector<Dep> deps = plan_.sinks[id].deps;
  const bool alone = stands_alone(plan_.sinks[id].kind);
  int level = 0;
  std::optional<Domain> rows;
  for (auto& d : deps) {
    d.is_on_chip = !alone && !d.is_buffered && can_share_kernel(plan_.sinks[id], d);
    if (d.is_on_chip && plan_.sinks[d.sink].domain.kind == kir::GroupKind::Row) {
      if (rows && !(*rows == plan_.sinks[d.sink].domain)) d.is_on_chip = false;
      if (d.is_on_chip) rows = plan_.sinks[d.sink].domain;
    }
  }
  for (auto& d : deps) {
    // What lies on chip in a kernel over a vector is out of reach of one over rows.
    const auto& t = plan_.sinks[d.sink];
    if (rows && t.domain.kind == kir::GroupKind::Tile)
      d.is_on_chip = d.align == Align::Flat && can_repeat_in_rows(t, *rows);
    level = std::max(level, t.level + (d.is_on_chip ? 0 : 1));
  }
  settle(id, deps, level);
}

void Planner::settle(int id, std::vector<Dep>& deps, int level) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& d : deps) {
      if (d.is_on_chip && plan_.sinks[d.sink].level < level) {
        d.is_on_chip = false;
        changed = true;
      }
      if (d.is_on_chip || d.is_buffered) {
        if (d.is_buffered) level = std::max(level, plan_.sinks[d.sink].level + 1);
        continue;
      }
      const int before = d.sink;
      d.sink = stored_form(d.sink, d.result);
      changed |= d.sink != before;
      level = std::max(level, plan_.sinks[d.sink].level + 1);
    }
  }
  auto& s = plan_.sinks[id];
  s.level = level;
  s.deps = deps;
  s.phase = 0;
  s.is_row_level = false;
  for (const auto& d : deps) {
    if (!d.is_on_chip) continue;
    const auto& t = plan_.sinks[d.sink];
    s.phase = std::max(s.phase, t.phase + (t.kind == SinkKind::Store ? 0 : 1));
    if (t.domain.kind != kir::GroupKind::Row) continue;
    s.is_row_level |= t.kind == SinkKind::RowReduce && d.align == Align::Flat;
    s.domain = t.domain;
  }
}

}  // namespace cinch::codegen
