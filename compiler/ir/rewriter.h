// What passes share: walking ops, who uses a value, cloning regions, replacing and erasing.
// Ids stay what they are: erased ops leave their region but not Function::ops; `compact` drops
// what is no longer reached.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::ir {

/// Every op of the region and, after the op itself, of the regions it holds (its combiner's too).
void walk(const Function& function, RegionId region,
          const std::function<void(OpId, RegionId in)>& visit);
/// The same over the whole body.
void walk(const Function& function, const std::function<void(OpId, RegionId in)>& visit);
/// Regions that an op holds: its own, then its combiner's.
std::vector<RegionId> held_regions(const Function& function, const Op& op);

/// The op that defines a value.
inline const Op& defining_op(const Function& function, ValueId value) {
  return function.ops[function.values[value.index()].def.index()];
}
inline const Type& type_of(const Function& function, ValueId value) {
  return function.values[value.index()].type;
}

/// For each value, the ops that read it (once per operand) in the order of the walk. Uses by
/// Function::results are not ops; see is_result.
class Uses {
 public:
  explicit Uses(const Function& function);
  const std::vector<OpId>& of(ValueId value) const { return uses_[value.index()]; }
  bool has_uses(ValueId value) const { return is_result(value) || !of(value).empty(); }
  bool is_result(ValueId value) const { return results_[value.index()]; }

 private:
  std::vector<std::vector<OpId>> uses_;
  std::vector<bool> results_;
};

/// Who reads each value, known while ops are added and uses change: a replacement costs as much as
/// the value has uses. Results must stay where they are.
class UseLists {
 public:
  explicit UseLists(Function& function);
  /// Every operand and result entry that is `from` becomes `to`, those of new ops too.
  void replace(ValueId from, ValueId to);

 private:
  void learn_new_ops();

  Function& function_;
  std::size_t num_known_ops_ = 0;
  std::vector<std::vector<OpId>> users_;  // by value, ops that stand nowhere among them
  std::unordered_map<ValueId, std::vector<ValueId*>> results_;
};

/// The values that Function::results names, in order.
std::vector<ValueId> result_values(const Function& function);

/// Values of the old place to those of the new one; what is not in it stays itself.
using ValueMap = std::unordered_map<ValueId, ValueId>;
/// Copies one op with all it holds to the end of `into`; operands go through `map`, which learns
/// the results.
OpId clone_op(Function& function, OpId source, RegionId into, ValueMap& map);
/// A copy of a region with args of its own.
RegionId clone_region(Function& function, RegionId source, ValueMap& map);
/// Copies the ops of `region` but its yield to the end of `into`, with `args` for its args; gives
/// the values it would have yielded.
std::vector<ValueId> inline_region(Function& function, RegionId region,
                                   const std::vector<ValueId>& args, RegionId into);

/// Whether the op or anything inside it can fail the call.
bool has_checks(const Function& function, OpId id);
/// Drops ops, values, regions and combiners that the body no longer reaches, and renumbers.
void compact(Function& function);

}  // namespace cinch::ir
