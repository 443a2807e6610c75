// eliminate_dead_values: removes ops that no result and no check needs, and unread results of an
// if_else. An op that finds a count stays while a size mentions the count.
//
//   before:  %1 = map.abs %0              after:  (nothing)
//            (no use of %1)
#include <algorithm>
#include <set>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

class DeadValues {
 public:
  DeadValues(const ir::Program& program, ir::Function& function, PassContext& context)
      : exprs_(*program.info.exprs), function_(function), context_(context) {}

  void run() {
    prune_branches();
    mark();
    sweep(function_.body);
    ir::compact(function_);
  }

 private:
  const ir::Op& op(ir::OpId id) const { return function_.ops[id.index()]; }

  // Marks backwards from results and checks; counts in sizes bring in their nonzero.
  void mark() {
    is_live_.assign(function_.ops.size(), false);
    for (ir::ValueId value : ir::result_values(function_)) mark_value(value);
    std::vector<ir::OpId> finders;
    ir::walk(function_, [&](ir::OpId id, ir::RegionId) {
      if (ir::op_info(op(id).kind).effect == ir::Effect::Check) mark_op(id);
      if (op(id).kind == ir::OpKind::nonzero) finders.push_back(id);
    });
    mark_holders(function_.body);
    for (std::size_t before = 0; before != counts_.size();) {
      before = counts_.size();
      for (ir::OpId id : finders) {
        if (counts_.contains(op(id).attrs.index)) mark_op(id);
      }
      mark_holders(function_.body);
    }
  }

  // An op that contains a live op is live.
  bool mark_holders(ir::RegionId region) {
    bool is_any = false;
    for (ir::OpId id : function_.regions[region.index()].ops) {
      for (ir::RegionId inner : op(id).regions) {
        if (mark_holders(inner)) mark_op(id);
      }
      is_any |= is_live_[id.index()] && op(id).kind != ir::OpKind::yield &&
                op(id).kind != ir::OpKind::arg;
    }
    return is_any;
  }

  void mark_value(ir::ValueId value) { mark_op(function_.values[value.index()].def); }

  void mark_op(ir::OpId id) {
    if (is_live_[id.index()]) return;
    is_live_[id.index()] = true;
    const ir::Op& each = op(id);
    for (ir::ValueId operand : each.operands) mark_value(operand);
    for (ir::ValueId result : each.results) note_counts(ir::type_of(function_, result));
    for (HostExprId size : {each.attrs.size, each.attrs.size2}) note_counts(size);
    if (each.kind == ir::OpKind::count_value) counts_.insert(each.attrs.index);
    for (ir::RegionId region : ir::held_regions(function_, each)) {
      mark_op(function_.regions[region.index()].ops.back());
      for (ir::ValueId arg : function_.regions[region.index()].args) mark_value(arg);
    }
  }

  void note_counts(const ir::Type& type) {
    for (int d = 0; d < type.rank; ++d) note_counts(type.dims[d]);
  }
  void note_counts(HostExprId id) {
    if (noted_.insert(id).second) counts_.merge(exprs_.counts_of(id));
  }

  // From the end: wherever the limit stops it, the operands of every remaining op still exist.
  void sweep(ir::RegionId region) {
    std::vector<ir::OpId> kept;
    const std::vector<ir::OpId> ops = function_.regions[region.index()].ops;
    for (std::size_t i = ops.size(); i-- > 0;) {
      const ir::OpKind kind = op(ops[i]).kind;
      const bool stays = is_live_[ops[i].index()] || kind == ir::OpKind::yield ||
                         kind == ir::OpKind::arg || !context_.may_rewrite();
      if (!stays) continue;
      kept.push_back(ops[i]);
      for (ir::RegionId inner : ir::held_regions(function_, op(ops[i]))) sweep(inner);
    }
    function_.regions[region.index()].ops.assign(kept.rbegin(), kept.rend());
  }

  // Drops unread results of an if_else, and the values that branches yield for them.
  void prune_branches() {
    const ir::Uses uses(function_);
    ir::walk(function_, [&](ir::OpId id, ir::RegionId) {
      if (op(id).kind != ir::OpKind::if_else) return;
      ir::Op& branch = function_.ops[id.index()];
      for (std::size_t i = branch.results.size(); i-- > 0;) {
        if (!uses.has_uses(branch.results[i]) && context_.may_rewrite()) drop_result(branch, i);
      }
    });
  }

  void drop_result(ir::Op& branch, std::size_t index) {
    const auto at = static_cast<std::ptrdiff_t>(index);
    branch.results.erase(branch.results.begin() + at);
    for (std::size_t i = index; i < branch.results.size(); ++i) {
      function_.values[branch.results[i].index()].result_index = static_cast<std::uint32_t>(i);
    }
    for (ir::RegionId region : branch.regions) {
      ir::Op& yield = function_.ops[function_.regions[region.index()].ops.back().index()];
      yield.operands.erase(yield.operands.begin() + at);
    }
  }

  const HostExprPool& exprs_;
  ir::Function& function_;
  PassContext& context_;
  std::vector<bool> is_live_;
  std::set<std::uint32_t> counts_;
  std::set<HostExprId> noted_;  // sizes that were visited
};

}  // namespace

void eliminate_dead_values(ir::Program& program, PassContext& context) {
  for (auto* functions : {&program.state_inits, &program.functions}) {
    for (ir::Function& function : *functions) DeadValues(program, function, context).run();
  }
}

}  // namespace cinch::passes
