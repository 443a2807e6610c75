// Recompute or store; see plan_region.h.
#include <algorithm>

#include "compiler/ir/ops.h"
#include "compiler/kernelize/walk_pulls.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
namespace {

using ir::OpKind;
using ir::ValueId;

void visit_region_uses(const ir::Function& fn, ir::RegionId region, std::set<std::uint32_t>& inner,
                       const std::function<void(ValueId)>& visit);

void visit_combiner_uses(const ir::Function& fn, const ir::Op& op, std::set<std::uint32_t>& inner,
                         const std::function<void(ValueId)>& visit) {
  if (!op.attrs.combiner.is_valid()) return;
  const auto& c = fn.combiners[op.attrs.combiner.index()];
  if (!c.op) visit_region_uses(fn, c.region, inner, visit);
}

void visit_op_uses(const ir::Function& fn, const ir::Op& op, std::set<std::uint32_t>& inner,
                   const std::function<void(ValueId)>& visit) {
  for (const auto v : op.operands) {
    if (!inner.contains(v.index())) visit(v);
  }
  for (const auto r : op.regions) visit_region_uses(fn, r, inner, visit);
  visit_combiner_uses(fn, op, inner, visit);
}

void visit_region_uses(const ir::Function& fn, ir::RegionId region, std::set<std::uint32_t>& inner,
                       const std::function<void(ValueId)>& visit) {
  for (const auto op_id : fn.regions[region.index()].ops) {
    const auto& op = fn.ops[op_id.index()];
    visit_op_uses(fn, op, inner, visit);
    for (const auto r : op.results) inner.insert(r.index());
  }
}

// The alignment of an operand that broadcasts into `result`.
Align broadcast_align(const FunctionContext& cx, const ir::Type& operand, const ir::Type& result,
                      Align align) {
  if (operand.rank == 0) return Align::None;
  if (operand.rank == result.rank &&
      std::equal(operand.dims, operand.dims + operand.rank, result.dims))
    return align;
  if (operand.rank == 2 && align == Align::Flat && operand.dims[0] == result.dims[0] &&
      cx.program.is_const(operand.dims[1], 1)) {
    return Align::Row;
  }
  return Align::None;
}

}  // namespace

void for_each_used_value(const ir::Function& fn, ir::OpId op,
                         const std::function<void(ValueId)>& visit) {
  std::set<std::uint32_t> inner;
  visit_op_uses(fn, fn.ops[op.index()], inner, visit);
}

void for_each_combiner_value(const ir::Function& fn, ir::OpId op,
                             const std::function<void(ValueId)>& visit) {
  std::set<std::uint32_t> inner;
  visit_combiner_uses(fn, fn.ops[op.index()], inner, visit);
}

bool is_selection(const FunctionContext& cx, ValueId v, ValueId selection) {
  while (!(v == selection)) {
    const auto& op = cx.def(v);
    const bool keeps = op.kind == OpKind::reshape ||
                       (op.kind == OpKind::convert && is_int(cx.value(v).type.dtype) &&
                        cx.value(v).type.dtype.bits >= 32);
    if (!keeps) return false;
    v = op.operands[0];
  }
  return true;
}

void for_each_pulled_operand(const FunctionContext& cx, const ir::Op& op, ValueId result,
                             Align align, ValueId compaction_idx,
                             const std::function<void(ValueId, Align)>& visit) {
  const auto& to = cx.value(result).type;
  const Align elsewhere = align == Align::Few ? Align::Few : Align::None;
  const bool follows = op.kind == OpKind::gather && compaction_idx.is_valid() &&
                       align == Align::Selected && cx.value(op.operands[0]).type.rank == 1 &&
                       is_selection(cx, op.operands[1], compaction_idx);
  if (follows) return visit(op.operands[0], Align::Flat);
  const auto align_of = [&](std::size_t operand) {
    const auto& from = cx.value(op.operands[operand]).type;
    const auto is_short = [&](const ir::Type& t) {
      return t.rank == 1 && cx.program.is_at_most_constant(t.dims[0]);
    };
    switch (ir::reads_of(op, operand)) {
      case ir::Reads::Pointwise:
        return broadcast_align(cx, from, to, align);
      case ir::Reads::SameIndex:
        return align == Align::Row ? Align::None : align;
      case ir::Reads::Index:
        return from.rank == 1 && to.rank == 1 ? align : elsewhere;
      case ir::Reads::Gathered:
        return is_short(to) && !is_short(from) ? Align::Few : elsewhere;
      default:
        return elsewhere;
    }
  };
  const bool is_gather = op.kind == OpKind::gather;  // its indices come first
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const std::size_t operand = is_gather ? 1 - i : i;
    visit(op.operands[operand], align_of(operand));
  }
}

void PullWalk::add_edge(int sink, Align align, Edge::Kind kind, std::uint32_t result) {
  if (sink == self) return;
  const auto is_same = [&](const Edge& e) {
    return e.from == sink && e.align == align && e.kind == kind && e.result == result;
  };
  if (std::ranges::none_of(edges, is_same)) edges.push_back({sink, align, result, kind});
}

void PullWalk::visit(ValueId v, Align align) {
  if (!seen.try_emplace({v.index(), align}, true).second) return;
  const auto def = cx.value(v).def;
  ValueId selection;
  if (compaction >= 0) selection = cx.op(plan.sinks[compaction].op).results[0];
  if (selection.is_valid() && v == selection) return add_edge(compaction, align);
  const auto& op = cx.op(def);
  // A value that follows the selection has as many elements as it: nothing reads that size.
  visit_counts(cx.value(v).type, align == Align::Selected);
  visit_count(op.attrs.size);
  if (op.kind == OpKind::count_value) add_count(op.attrs.index, false);
  const auto barrier = plan.sink_of_op.find(def.index());
  const auto stored = plan.stored.find(v.index());
  const bool is_stored = stored != plan.stored.end() && stored->second != self &&
                         plan.sinks[stored->second].changed_by < 0 &&
                         (align != Align::Few || plan.long_work.contains(v.index()));
  if (barrier != plan.sink_of_op.end()) {
    const auto& sink = plan.sinks[barrier->second];
    const bool is_count = sink.kind == SinkKind::Nonzero && cx.value(v).result_index == 1;
    return add_edge(barrier->second, align, is_count ? Edge::Kind::Count : Edge::Kind::Value,
                    cx.value(v).result_index);
  }
  if (is_stored) return add_edge(stored->second, align);
  if (cx.buffer_of(v)) return;
  for_each_pulled_operand(cx, op, v, align, selection, [&](ValueId operand, Align operand_align) {
    visit(operand, operand_align);
  });
}

void PullWalk::visit_count(HostExprId size, bool is_own_known) {
  for (const auto count : cx.program.exprs().counts_of(size)) add_count(count, is_own_known);
}

void PullWalk::add_count(std::uint64_t count, bool is_own_known) {
  const auto finders = plan.finders_of.find(count);
  if (finders == plan.finders_of.end()) return;
  for (const int i : finders->second) {
    if (!is_own_known || i != compaction) add_edge(i, Align::None, Edge::Kind::Count);
  }
}

void PullWalk::visit_counts(const ir::Type& type, bool is_own_known) {
  for (int d = 0; d < type.rank; ++d) visit_count(type.dims[d], is_own_known);
}

void PullWalk::visit_counts_of(ir::OpId op_id) {
  const auto& op = cx.op(op_id);
  visit_count(op.attrs.size);
  visit_count(op.attrs.size2);
  if (op.kind == OpKind::count_value) add_count(op.attrs.index, false);
  for (const auto r : op.results) visit_counts(cx.value(r).type);
  for (const auto r : op.regions) {
    for (const auto inner : cx.fn.regions[r.index()].ops) visit_counts_of(inner);
  }
}

int find_compaction(const FunctionContext& cx, const RegionPlan& plan, ValueId v) {
  // Only a value with the same extent follows its user place by place; a reshape tells that two
  // extents are equal.
  const auto is_vector_like = [&](ValueId value, HostExprId extent) {
    const auto& t = cx.value(value).type;
    return t.rank == 1 && t.dims[0] == extent;
  };
  if (cx.value(v).type.rank != 1) return -1;
  std::vector<ValueId> work = {v};
  std::set<std::uint32_t> seen;
  while (!work.empty()) {
    const auto value = work.back();
    work.pop_back();
    if (!seen.insert(value.index()).second) continue;
    const auto& op = cx.def(value);
    const auto sink = plan.sink_of_op.find(cx.value(value).def.index());
    if (sink != plan.sink_of_op.end()) {
      if (plan.sinks[sink->second].kind == SinkKind::Nonzero) return sink->second;
      continue;
    }
    const auto extent = cx.value(value).type.dims[0];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const ir::Reads reads = ir::reads_of(op, i);
      const bool is_follower = reads == ir::Reads::Pointwise || reads == ir::Reads::Index;
      const auto operand = op.operands[i];
      if (is_follower ? is_vector_like(operand, extent)
                      : op.kind == OpKind::reshape && cx.value(operand).type.rank == 1) {
        work.push_back(operand);
      }
    }
  }
  return -1;
}

namespace {

// A loop or branch that uses a value sweeps it an unknown number of times; this many are assumed.
constexpr int kAssumedSweepsInControl = 4;
// An array of a constant size is computed where it is read, unless a loop reads one as large as
// this.
constexpr std::int64_t kLargeInLoop = 1024;
// Limit of the count for arrays behind arrays.
constexpr int kManyLoads = 1 << 16;

class Costs {
 public:
  Costs(const FunctionContext& cx, const RegionPlan& plan) : cx_(cx), plan_(plan) {}

  // Number of loads of whole arrays, arithmetic included, for computing an element of `v`.
  int loads(ValueId v) {
    if (const auto known = loads_.find(v.index()); known != loads_.end()) return known->second;
    std::set<std::uint32_t> seen;
    const int found = std::min(walk(v, seen), kManyLoads);
    loads_[v.index()] = found;
    return found;
  }

  // Calls visit for every value of an array's size that a sink computes element by element.
  void for_each_flat(const Sink& s, ValueId root, const std::function<void(ValueId)>& visit) {
    std::set<std::uint32_t> seen;
    flat(root, s.kind == SinkKind::Store ? s.value : ValueId(), s.kind == SinkKind::Control, seen,
         visit);
  }

 private:
  bool lies_in_memory(ValueId v) const {
    return cx_.buffer_of(v) || plan_.stored.contains(v.index()) ||
           plan_.sink_of_op.contains(cx_.value(v).def.index());
  }
  int walk(ValueId v, std::set<std::uint32_t>& seen) {
    if (!seen.insert(v.index()).second) return 0;
    if (cx_.value(v).type.rank == 0) return 0;
    if (lies_in_memory(v)) return 1;
    const auto& op = cx_.def(v);
    if (op.kind == OpKind::gradient || op.kind == OpKind::state || op.kind == OpKind::field ||
        op.kind == OpKind::const_array) {
      return 1;
    }
    // A gather is a separate access, even if the same array is read elsewhere.
    if (op.kind == OpKind::gather) return loads(op.operands[0]) + walk(op.operands[1], seen);
    int sum = ir::cost_of_element(cx_.program.out.info, op);
    for (const auto operand : op.operands) sum += walk(operand, seen);
    return sum;
  }
  void flat(ValueId v, ValueId own, bool is_root_ok, std::set<std::uint32_t>& seen,
            const std::function<void(ValueId)>& visit) {
    if (!seen.insert(v.index()).second || cx_.value(v).type.rank == 0) return;
    if (!(v == own) && lies_in_memory(v)) return;
    visit(v);
    for_each_pulled_operand(cx_, cx_.def(v), v, Align::Flat, {}, [&](ValueId operand, Align align) {
      if (align == Align::Flat) flat(operand, own, is_root_ok, seen, visit);
    });
  }

  const FunctionContext& cx_;
  const RegionPlan& plan_;
  std::unordered_map<std::uint32_t, int> loads_;
};

}  // namespace

std::optional<ValueId> choose_store(const FunctionContext& cx, ir::RegionId region,
                                    const RegionPlan& plan) {
  if (!region.is_valid()) return std::nullopt;
  Costs costs(cx, plan);
  std::map<std::uint32_t, std::set<std::pair<int, int>>>
      kernels_of;  // value -> kernels that compute it
  std::set<std::uint32_t> in_loops;
  for (int k = 0; k < static_cast<int>(plan.kernels.size()); ++k) {
    for (const int id : plan.kernels[k].sinks) {
      const auto& s = plan.sinks[id];
      const int sweeps = s.kind == SinkKind::Control ? kAssumedSweepsInControl : 1;
      const auto note = [&](ValueId v) {
        for (int i = 0; i < sweeps; ++i) kernels_of[v.index()].insert({k, i});
        if (s.kind == SinkKind::Control && cx.op(s.op).kind != OpKind::if_else)
          in_loops.insert(v.index());
      };
      if (s.kind == SinkKind::Store) costs.for_each_flat(s, s.value, note);
      if (s.op.is_valid()) {
        for_each_used_value(cx.fn, s.op, [&](ValueId v) { costs.for_each_flat(s, v, note); });
      }
    }
  }
  const auto& ops = cx.fn.regions[region.index()].ops;
  std::set<std::uint32_t> here;
  for (const auto op : ops) {
    for (const auto r : cx.op(op).results) here.insert(r.index());
  }
  std::optional<ValueId> best;
  int best_saving = 0;
  for (const auto& [value, kernels] : kernels_of) {
    const ValueId v(std::size_t{value});
    const auto size = cx.program.const_int(cx.program.num_elems(cx.value(v).type));
    if (size && (*size < kLargeInLoop || !in_loops.contains(value))) continue;
    if (!here.contains(value) || plan.stored.contains(value) || is_bool(cx.value(v).type.dtype))
      continue;
    const int num = static_cast<int>(kernels.size());
    if (num < 2) continue;
    const int loads = costs.loads(v);
    const int saving = (num - 1) * (loads - 1) - 1;
    if (saving >= best_saving && saving > 0) {
      best = v;
      best_saving = saving;
    }
  }
  return best;
}

}  // namespace cinch::codegen
