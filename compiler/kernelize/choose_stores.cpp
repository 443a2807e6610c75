// Recompute or store; see plan_region.h.
#include "compiler/kernelize/plan_region.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/ir/ops.h"
#include "compiler/kernelize/walk_pulls.h"

namespace cinch::codegen {
namespace {

using ir::OpKind;
using ir::ValueId;

// A loop or branch that uses a value sweeps it an unknown number of times; this many are assumed.
constexpr int kAssumedSweepsInControl = 4;
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
  for (int k = 0; k < static_cast<int>(plan.kernels.size()); ++k) {
    for (const int id : plan.kernels[k].sinks) {
      const auto& s = plan.sinks[id];
      const int sweeps = s.kind == SinkKind::Control ? kAssumedSweepsInControl : 1;
      const auto note = [&](ValueId v) {
        for (int i = 0; i < sweeps; ++i) kernels_of[v.index()].insert({k, i});
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
    if (cx.program.const_int(cx.program.num_elems(cx.value(v).type))) continue;
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
