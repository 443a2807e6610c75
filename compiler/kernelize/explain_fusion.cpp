// Why two kernels of a region are not one; see plan_region.h.
#include "compiler/kernelize/plan_region.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text/text.h"
#include "compiler/kernelize/planner.h"

namespace cinch::codegen {
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
    return {cx_.program.out.info.exprs.const_int(1), {}};
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
