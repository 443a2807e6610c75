// Planner: which operators of a region must run.
#include <algorithm>

#include "compiler/ir/ops.h"
#include "compiler/kernelize/planner.h"
#include "compiler/kernelize/walk_pulls.h"

namespace cinch::codegen {
namespace {

using ir::OpKind;
using ir::ValueId;

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

std::set<std::uint32_t> find_live(const FunctionContext& cx, const std::vector<ir::OpId>& ops,
                                  std::vector<ValueId> wanted) {
  return Liveness(cx, ops, std::move(wanted)).find();
}

}  // namespace cinch::codegen
