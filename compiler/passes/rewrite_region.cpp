// See rewrite_region.h.
#include "compiler/passes/rewrite_region.h"

#include <unordered_map>

#include "compiler/ir/rewriter.h"

namespace cinch::passes {
namespace {

class RegionRewriter {
 public:
  RegionRewriter(ir::Program& program, ir::Function& function, PassContext& context,
                 const Rewrite& rewrite)
      : function_(function), builder_(program, function), context_(context), rewrite_(rewrite) {}

  bool run() {
    visit(function_.body);
    return is_changed_;
  }

 private:
  std::vector<ir::OpId>& ops(ir::RegionId region) { return function_.regions[region.index()].ops; }

  void visit(ir::RegionId region) {
    for (std::size_t i = 0; i < ops(region).size() && context_.has_leave(); ++i) {
      const ir::OpId op = ops(region)[i];
      const std::size_t num_before = ops(region).size();
      builder_.set_insertion(region, i);
      builder_.set_span(function_.ops[op.index()].span);
      const std::optional<ir::ValueIds> values = rewrite_(builder_, op);
      i += ops(region).size() - num_before;
      if (values) {
        replace(op, *values);
        ops(region).erase(ops(region).begin() + static_cast<std::ptrdiff_t>(i--));
        is_changed_ = context_.may_rewrite();
        continue;
      }
      for (ir::RegionId inner : ir::held_regions(function_, function_.ops[op.index()])) {
        visit(inner);
      }
    }
  }

  void replace(ir::OpId op, const ir::ValueIds& values) {
    std::unordered_map<ir::ValueId, ir::ValueId> to;
    const ir::ValueIds results = function_.ops[op.index()].results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      to[results[i]] = values[i];
      const std::string& name = function_.values[results[i].index()].name;
      std::string& new_name = function_.values[values[i].index()].name;
      if (new_name.empty()) new_name = name;
    }
    ir::replace_all_uses(function_, to);
  }

  ir::Function& function_;
  ir::Builder builder_;
  PassContext& context_;
  const Rewrite& rewrite_;
  bool is_changed_ = false;
};

}  // namespace

bool rewrite_all(ir::Program& program, PassContext& context, const Rewrite& rewrite) {
  bool is_changed = false;
  for (auto* functions : {&program.state_inits, &program.functions}) {
    for (ir::Function& function : *functions) {
      is_changed |= RegionRewriter(program, function, context, rewrite).run();
    }
  }
  return is_changed;
}

}  // namespace cinch::passes
