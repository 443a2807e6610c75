// The loop that rewrites a region, and the pass that asks whether payloads add up.
#include <utility>

#include "compiler/analysis/proofs.h"
#include "compiler/ir/rewriter.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

class RegionRewriter {
 public:
  RegionRewriter(ir::Program& program, ir::Function& function, PassContext& context,
                 const Rewrite& rewrite)
      : function_(function),
        builder_(program, function),
        uses_(function),
        context_(context),
        rewrite_(rewrite) {}

  bool run() {
    visit(function_.body);
    return is_changed_;
  }

 private:
  std::vector<ir::OpId>& ops(ir::RegionId region) { return function_.regions[region.index()].ops; }

  // Refills the region: new ops go to its end, then the op itself if it stays.
  void visit(ir::RegionId region) {
    const std::vector<ir::OpId> old = std::exchange(ops(region), {});
    ops(region).reserve(old.size());
    for (const ir::OpId op : old) {
      if (context_.has_leave() && rewrites(op, region)) continue;
      ops(region).push_back(op);
      if (!context_.has_leave()) continue;
      for (ir::RegionId inner : ir::held_regions(function_, function_.ops[op.index()])) {
        visit(inner);
      }
    }
  }

  bool rewrites(ir::OpId op, ir::RegionId region) {
    builder_.set_insertion(region);
    const ir::Op offered = function_.ops[op.index()];
    builder_.set_span(offered.span);
    const std::optional<ir::ValueIds> values = rewrite_(builder_, offered);
    if (!values) return false;
    replace(op, *values);
    is_changed_ = context_.may_rewrite();
    return true;
  }

  void replace(ir::OpId op, const ir::ValueIds& values) {
    const ir::ValueIds results = function_.ops[op.index()].results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string& name = function_.values[results[i].index()].name;
      std::string& new_name = function_.values[values[i].index()].name;
      if (new_name.empty()) new_name = name;
      uses_.replace(results[i], values[i]);
    }
  }

  ir::Function& function_;
  ir::Builder builder_;
  ir::UseLists uses_;
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

// prove_aggregation: finds out whether payloads may be added field by field, and whether `finish`
// is linear in the sum. It changes only the program's facts.
//
//   before:  wire counts 0 { value: [f32; k] by sum }    after:  aggregation sum_proved
//            aggregation gather

void prove_aggregation(ir::Program& program, PassContext& context) {
  const bool is_linear = analysis::is_finish_linear(program);
  if (is_linear != program.info.is_finish_linear && context.may_rewrite()) {
    program.info.is_finish_linear = is_linear;
  }
  program.info.is_linear = analysis::is_linear(program);
  const rt::Aggregation found = analysis::find_aggregation(program);
  if (found == program.info.aggregation || !context.may_rewrite()) return;
  program.info.aggregation = found;
  if (found == rt::Aggregation::SumToTest) {
    context.remark({}, "neither decode nor encode was seen to be linear");
  }
}

}  // namespace cinch::passes
