// Planner: decides which kernel a sink can share with what it reads, and its level.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text/text.h"
#include "compiler/kernelize/plan_region.h"

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

bool Planner::can_share_kernel(const Sink& s, const Edge& e) const {
  const auto& t = plan_.sinks[e.from];
  switch (t.kind) {
    case SinkKind::RowReduce:
      if (e.align == Align::Row) return can_feed_rows(t) && can_run_in_rows(s, t.domain);
      return e.align == Align::Flat && s.kind == SinkKind::Store && s.compaction < 0 &&
             !is_packed(s.buffer) && pc_.num_elems(type(s.value)) == t.domain.rows;
    case SinkKind::RowTransform:
      return e.align == Align::Flat && can_run_in_rows(s, t.domain);
    case SinkKind::RunningSum:
      return e.align == Align::Flat && kernel_domain(s) == t.domain && !stands_alone(s.kind);
    case SinkKind::Nonzero:
      return s.compaction == e.from && e.align == Align::Selected;
    case SinkKind::Store:
      if (t.compaction >= 0) return s.compaction == t.compaction && e.align == Align::Selected;
      // A value per row is available to the elements of that row.
      if (t.is_row_level) return e.align == Align::Row && can_run_in_rows(s, t.domain);
      return e.align == Align::Flat && !stands_alone(s.kind) &&
             (kernel_domain(s) == t.domain ||
              (t.domain.kind == kir::GroupKind::Row && s.domain.kind == kir::GroupKind::Tile &&
               can_run_in_rows(s, t.domain)) ||
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
  if (s.kind == SinkKind::RowTransform || s.kind == SinkKind::RowPlaces) return s.domain == rows;
  return s.kind == SinkKind::Store && s.compaction < 0 &&
         (s.domain == rows || is_flat_view(s.domain.extent, rows));
}

bool Planner::can_repeat_in_rows(const Sink& stored, const Domain& rows) const {
  return stored.kind == SinkKind::Store && stored.compaction < 0 && stored.phase == 0 &&
         stored.domain.kind == kir::GroupKind::Tile && is_flat_view(stored.domain.extent, rows);
}

void Planner::find_on_chip(const Sink& s, std::vector<Edge>& edges) const {
  if (stands_alone(s.kind)) return;
  std::optional<Domain> rows;
  for (auto& e : edges) {
    if (e.kind != Edge::Kind::Value || !can_share_kernel(s, e)) continue;
    const auto& domain = plan_.sinks[e.from].domain;
    const bool is_of_rows = domain.kind == kir::GroupKind::Row;
    e.is_on_chip = !is_of_rows || !rows || *rows == domain;
    if (e.is_on_chip && is_of_rows) rows = domain;
  }
  if (!rows) return;
  for (auto& e : edges) {
    // A value on chip in a kernel over a vector cannot be used by a kernel over rows.
    const auto& t = plan_.sinks[e.from];
    if (e.kind == Edge::Kind::Value && t.domain.kind == kir::GroupKind::Tile)
      e.is_on_chip = e.align == Align::Flat && can_repeat_in_rows(t, *rows);
  }
}

int Planner::phase_behind(const std::vector<Edge>& edges) const {
  int phase = 0;
  for (const auto& e : edges) {
    const auto& t = plan_.sinks[e.from];
    if (e.is_on_chip) phase = std::max(phase, t.phase + (t.kind == SinkKind::Store ? 0 : 1));
  }
  return phase;
}

// Kernels of a level run in the order of their sinks, so sinks that share no kernel may follow
// others in a level: a value is kept behind its store, and a loop that reads what is kept behind
// that. So what a selection keeps for its loop does not part the sweeps around the loop.
int Planner::level_behind(const Sink& s, const std::vector<Edge>& edges) const {
  int level = 0;
  for (const auto& e : edges) {
    const Sink& from = plan_.sinks[e.from];
    const bool follows =
        s.kind == SinkKind::Kept || (s.kind == SinkKind::Control && from.kind == SinkKind::Kept);
    level = std::max(level, from.level + (e.is_on_chip || follows ? 0 : 1));
  }
  return level;
}

// Values from a lower level are read from memory, in stored form. Returns whether anything changed.
bool Planner::leave_chip(std::vector<Edge>& edges, int level) {
  bool has_changed = false;
  for (auto& e : edges) {
    if (e.is_on_chip && plan_.sinks[e.from].level == level) continue;
    has_changed |= e.is_on_chip;
    e.is_on_chip = false;
    if (e.kind != Edge::Kind::Value) continue;
    const auto& from = plan_.sinks[e.from];
    if (!is_store_of_barrier_possible(from.kind)) continue;
    // The Store sink with the result, which is made now if there is none.
    const auto v = cx_.op(from.op).results[e.result];
    const auto known = plan_.stored.find(v.index());
    e.from = known != plan_.stored.end() ? known->second
                                         : add_store({v, rt::kNoIndex, false}, name(v, "kept"));
    has_changed = true;
  }
  return has_changed;
}

bool Planner::is_made_on_chip(int id) const {
  const auto& s = plan_.sinks[id];
  return s.compaction >= 0 ||
         (s.kind == SinkKind::Store && plan_.sink_of_op.contains(cx_.value(s.value).def.index()));
}

void Planner::place(int id) {
  std::vector<Edge> edges = plan_.sinks[id].edges;  // a copy: making stored forms adds sinks
  find_on_chip(plan_.sinks[id], edges);
  const bool is_free = std::ranges::any_of(edges, &Edge::is_on_chip) && !is_made_on_chip(id);
  if (is_free && !pc_.steps.may_take()) {
    for (auto& e : edges) e.is_on_chip = false;
  }
  if (phase_behind(edges) > kMostPhases && !is_made_on_chip(id)) {
    for (auto& e : edges) e.is_on_chip = false;
  }
  int level = level_behind(plan_.sinks[id], edges);
  while (leave_chip(edges, level)) level = level_behind(plan_.sinks[id], edges);
  auto& s = plan_.sinks[id];
  s.level = level;
  s.edges = std::move(edges);
  s.phase = phase_behind(s.edges);
  s.is_row_level = false;
  for (const auto& e : s.edges) {
    if (!e.is_on_chip) continue;
    const auto& t = plan_.sinks[e.from];
    if (t.domain.kind != kir::GroupKind::Row) continue;
    s.is_row_level |= t.kind == SinkKind::RowReduce && e.align == Align::Flat;
    s.domain = t.domain;
  }
}

// Why two kernels of a region are not one; see plan_region.h.

namespace {

class Apart {
 public:
  Apart(const FunctionContext& cx, const RegionPlan& plan) : cx_(cx), plan_(plan) {}

  SweepsApart why(const KernelPlan& first, const KernelPlan& second) {
    if (const auto* edge = edge_between(first.sinks, second)) return reason(*edge);
    if (!(first.domain == second.domain)) {
      return {{},
              {},
              "different domains " + domain(first.domain) + " and " + domain(second.domain),
              {},
              {as_sizes(first.domain), as_sizes(second.domain)}};
    }
    // Looks for a kernel in between on which the second one depends.
    for (const KernelPlan& between : plan_.kernels) {
      if (between.level < first.level || between.level >= second.level) continue;
      if (const auto* edge = edge_between(between.sinks, second)) return reason(*edge);
    }
    return {{}, {}, "each runs as early as it can", {}};
  }

 private:
  const Edge* edge_between(const std::vector<int>& from, const KernelPlan& to) {
    for (const int id : to.sinks) {
      for (const Edge& edge : plan_.sinks[id].edges) {
        if (edge.is_on_chip || std::ranges::find(from, edge.from) == from.end()) continue;
        reader_ = id;
        return &edge;
      }
    }
    return nullptr;
  }

  ir::ValueId value_of(const Sink& s, std::uint32_t result) const {
    if (s.value) return s.value;
    const auto& results = cx_.op(s.op).results;
    return result < results.size() ? results[result] : ir::ValueId();
  }
  std::string name(ir::ValueId v) const {
    if (!v || cx_.value(v).name.empty()) return "a value";
    return "`" + cx_.value(v).name + "`";
  }

  SweepsApart reason(const Edge& edge) const {
    const Sink& from = plan_.sinks[edge.from];
    const Sink& to = plan_.sinks[reader_];
    const auto made = value_of(from, edge.result);
    SweepsApart apart{{}, {}, text(edge, from, to, name(made)), {}};
    if (made) apart.at = cx_.def(made).span;
    return apart;
  }
  std::string text(const Edge& edge, const Sink& from, const Sink& to,
                   const std::string& made) const {
    switch (edge.kind) {
      case Edge::Kind::Before:
        return fmt::format("{} is read before {} changes where it lies", base_of(to),
                           name(value_of(to, 0)));
      case Edge::Kind::Change:
        return fmt::format("{} is changed in place", made);
      case Edge::Kind::Count:
        return fmt::format("needs how many elements {} selects", made);
      case Edge::Kind::Check:
        return "writes nothing where a check fails";
      case Edge::Kind::Value:
        break;
    }
    if (from.kind != SinkKind::Store) return "needs all of " + made;
    const bool is_of_rows = from.domain.kind == kir::GroupKind::Row && from.domain == to.domain;
    if (is_of_rows && from.phase >= kMostPhases)
      return fmt::format("needs {} behind {} others, as many as one sweep takes", made,
                         kMostPhases);
    if (from.domain.kind == kir::GroupKind::Single) return fmt::format("needs {} first", made);
    if (stands_alone(to.kind)) return "works on all of " + made;
    return edge.align == Align::Flat ? fmt::format("needs {}, a store of its own", made)
                                     : fmt::format("reads {} at other places", made);
  }
  // The array in which the scatter works.
  std::string base_of(const Sink& scatter) const {
    return scatter.source < 0 ? "its base" : name(value_of(plan_.sinks[scatter.source], 0));
  }

  SweepDomain as_sizes(const Domain& d) const {
    if (d.kind == kir::GroupKind::Row) return {d.rows, d.cols};
    if (d.kind == kir::GroupKind::Tile) return {d.extent, {}};
    return {cx_.program.out.info.exprs->const_int(1), {}};
  }
  std::string domain(const Domain& d) const {
    const ir::HostPrinter text(cx_.program.out.info);
    switch (d.kind) {
      case kir::GroupKind::Single:
        return "one scalar";
      case kir::GroupKind::Tile:
        return text.print(d.extent);
      case kir::GroupKind::Row:
        return fmt::format("{} x {}", text.print(d.rows), text.print(d.cols));
    }
    return {};
  }

  const FunctionContext& cx_;
  const RegionPlan& plan_;
  int reader_ = -1;  // of the last edge that was found
};

}  // namespace

SweepsApart why_apart(const FunctionContext& cx, const RegionPlan& plan, const KernelPlan& first,
                      const KernelPlan& second) {
  return Apart(cx, plan).why(first, second);
}

}  // namespace cinch::codegen
