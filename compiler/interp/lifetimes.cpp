#include "compiler/interp/evaluator.h"

#include "compiler/ir/rewriter.h"

namespace cinch::interp {
namespace {

class Lifetimes {
 public:
  explicit Lifetimes(const ir::Function& function)
      : function_(function),
        current_(function.regions.size()),
        home_(function.values.size()),
        last_(function.values.size()) {}

  std::vector<std::vector<ir::ValueId>> run() {
    visit(function_.body);
    for (ir::ValueId value : ir::result_values(function_)) last_[value.index()] = {};
    std::vector<std::vector<ir::ValueId>> lists(function_.ops.size());
    for (std::size_t v = 0; v < last_.size(); ++v) {
      if (last_[v].is_valid()) lists[last_[v].index()].emplace_back(v);
    }
    return lists;
  }

 private:
  // A read counts for the current op of the region where the value is defined.
  void visit(ir::RegionId region) {
    for (ir::OpId id : function_.regions[region.index()].ops) {
      const ir::Op& op = function_.ops[id.index()];
      current_[region.index()] = id;
      for (ir::ValueId value : op.operands) {
        last_[value.index()] = current_[home_[value.index()].index()];
      }
      for (ir::RegionId held : ir::held_regions(function_, op)) visit(held);
      for (ir::ValueId value : op.results) {
        home_[value.index()] = region;
        last_[value.index()] = id;
      }
    }
  }

  const ir::Function& function_;
  std::vector<ir::OpId> current_;   // by region
  std::vector<ir::RegionId> home_;  // by value
  std::vector<ir::OpId> last_;
};

}  // namespace

std::vector<std::vector<ir::ValueId>> last_read_by(const ir::Function& function) {
  return Lifetimes(function).run();
}

}  // namespace cinch::interp
