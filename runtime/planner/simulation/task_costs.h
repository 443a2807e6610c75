// What single tasks of a plan cost.
#pragma once
#include <vector>

#include "runtime/planner/plan_cost.h"

namespace cinch::rt {

class TaskCosts {
 public:
  /// Both outlive this. With CostInputs::stand_ins, groups count as often as their owners.
  TaskCosts(const Plan& plan, const CostInputs& inputs);

  /// Of computing, of one unit.
  double seconds(const Task& task) const;
  /// Bytes of an exchange in a slot.
  double bytes(const RankPlan& rank, const Task& task, std::uint32_t slot) const;
  /// The written rank that owns the group, where all ranks own groups of its bundle.
  std::optional<std::uint32_t> owner_of(std::uint32_t group) const;
  /// So many groups stand behind it.
  double weight_of(std::uint32_t group) const;

 private:
  // Null: the rank's device works on the task.
  const CpuSpeeds* cpus_of(const Task& task) const;
  const CodecSpeed& dense_of(const Task& task) const;
  const CodecSpeed& speed_of(const Task& task) const;
  double part_seconds(const Task& task) const;
  double add_up(const Task& task, const CostCurve& curve) const;

  const Plan& plan_;
  const CostInputs& inputs_;
  std::vector<std::uint32_t> owner_;  // by group, with stand-ins
};

}  // namespace cinch::rt
