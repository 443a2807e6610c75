// Tools that passes share: walk ops, find a value's uses, clone regions, replace and erase. Ids are
// stable: erased ops leave their region but stay in Function::ops. `compact` drops unreachable
// ones.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::ir {

/// Visits every op of the region and, after each op, the regions that it holds (its combiner's
/// too).
void walk(const Function& function, RegionId region,
          const std::function<void(OpId, RegionId in)>& visit);
/// Visits the whole body.
void walk(const Function& function, const std::function<void(OpId, RegionId in)>& visit);
/// The regions that an op holds: its own, then its combiner's.
std::vector<RegionId> held_regions(const Function& function, const Op& op);

/// The op that defines a value.
inline const Op& defining_op(const Function& function, ValueId value) {
  return function.ops[function.values[value.index()].def.index()];
}
inline const Type& type_of(const Function& function, ValueId value) {
  return function.values[value.index()].type;
}

/// For each value, the ops that read it (once per operand) in the order of the walk.
/// Function::results are not ops, so they do not count; see is_result.
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

/// The readers of each value, kept up to date while ops are added and uses change. A replacement
/// costs as much as the value has uses. Results must not move.
class UseLists {
 public:
  explicit UseLists(Function& function);
  /// Replaces `from` by `to` in all operands and result entries, also those of new ops.
  void replace(ValueId from, ValueId to);

 private:
  void learn_new_ops();

  Function& function_;
  std::size_t num_known_ops_ = 0;
  std::vector<std::vector<OpId>> users_;  // by value; includes ops that are in no region
  std::unordered_map<ValueId, std::vector<ValueId*>> results_;
};

/// The values that Function::results names, in order.
std::vector<ValueId> result_values(const Function& function);

/// Maps old values to new ones; values that are not in it stay.
using ValueMap = std::unordered_map<ValueId, ValueId>;
/// Copies one op and all it holds to the end of `into`. Operands go through `map`; the copy's
/// results are added to it.
OpId clone_op(Function& function, OpId source, RegionId into, ValueMap& map);
/// Copies a region, with args of its own.
RegionId clone_region(Function& function, RegionId source, ValueMap& map);
/// Copies the ops of `region` except its yield to the end of `into`, with `args` for its args.
/// Returns the values that it would have yielded.
std::vector<ValueId> inline_region(Function& function, RegionId region,
                                   const std::vector<ValueId>& args, RegionId into);

/// Can the op or anything inside it fail the call?
bool has_checks(const Function& function, OpId id);
/// Drops ops, values, regions and combiners that the body does not reach, and renumbers the rest.
void compact(Function& function);

}  // namespace cinch::ir
