#include "runtime/planner/simulation/task_costs.h"

#include <algorithm>

#include "runtime/planner/planner.h"

namespace cinch::rt {

TaskCosts::TaskCosts(const Plan& plan, const CostInputs& inputs) : plan_(plan), inputs_(inputs) {
  if (!inputs.stand_ins) return;
  owner_.assign(plan.groups.size(), kNotWritten);
  std::vector<std::vector<std::uint32_t>> of_bundle;
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    of_bundle.resize(std::max<std::size_t>(of_bundle.size(), group.bundle + 1));
    const bool has_sync = group.codec != kDense && !inputs.codecs[group.codec].parts.empty();
    if (group.carries == kNoGroup && !has_sync) of_bundle[group.bundle].push_back(g);
  }
  for (const auto& groups : of_bundle) {
    if (groups.size() != plan.world()) continue;
    for (std::uint32_t i = 0; i < groups.size(); ++i) owner_[groups[i]] = i;
  }
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].carries != kNoGroup) owner_[g] = owner_[plan.groups[g].carries];
  }
}

std::optional<std::uint32_t> TaskCosts::owner_of(std::uint32_t group) const {
  if (owner_.empty() || owner_[group] == kNotWritten) return std::nullopt;
  return owner_[group];
}

double TaskCosts::weight_of(std::uint32_t group) const {
  const auto owner = owner_of(group);
  if (!owner || inputs_.stand_ins->is_circle) return 1;
  return inputs_.stand_ins->unit_of(*owner).weight;
}

double TaskCosts::seconds(const Task& task) const {
  switch (task.kind) {
    case TaskKind::Clear:
      return add_up(task, cpus_of(task) != nullptr ? cpus_of(task)->clear : inputs_.clear);
    case TaskKind::Encode:
      return add_up(task, speed_of(task).encode);
    case TaskKind::Decode:
      return add_up(task, speed_of(task).decode);
    case TaskKind::DecodeAdd:
      return add_up(task, speed_of(task).decode_add);
    case TaskKind::Add:
    case TaskKind::Scale:
      return add_up(task, dense_of(task).decode_add);
    case TaskKind::Finish:
      return add_up(task, speed_of(task).finish);
    case TaskKind::Spread:
      return add_up(task, speed_of(task).spread);
    case TaskKind::Join:
      return add_up(task, speed_of(task).join);
    case TaskKind::Part:
      return part_seconds(task);
    case TaskKind::Fetch:
      return cpus_of(task) != nullptr ? add_up(task, cpus_of(task)->copy_out) : 0;
    case TaskKind::Deliver:
      return cpus_of(task) != nullptr ? add_up(task, cpus_of(task)->copy_in) : 0;
    case TaskKind::Exchange:
    case TaskKind::Synchronise:
      break;
  }
  return 0;
}

double TaskCosts::bytes(const RankPlan& rank, const Task& task, std::uint32_t slot) const {
  const auto capacity = static_cast<double>(rank.slots[slot].capacity);
  return task.is_sized ? capacity * speed_of(task).used_share : capacity;
}

const CpuSpeeds* TaskCosts::cpus_of(const Task& task) const {
  return task.on_cpus && inputs_.on_cpus ? &*inputs_.on_cpus : nullptr;
}

const CodecSpeed& TaskCosts::dense_of(const Task& task) const {
  return cpus_of(task) != nullptr ? cpus_of(task)->dense : inputs_.dense;
}

const CodecSpeed& TaskCosts::speed_of(const Task& task) const {
  const std::uint32_t codec = plan_.groups[task.groups[0]].codec;
  if (task.is_dense || codec == kDense) return dense_of(task);
  return cpus_of(task) != nullptr ? cpus_of(task)->codecs[codec] : inputs_.codecs[codec];
}

double TaskCosts::part_seconds(const Task& task) const {
  const auto& parts = speed_of(task).parts;
  if (parts.empty()) return 0;
  const std::size_t last = parts.size() - 1;
  if (task.is_last_part()) return add_up(task, parts[last]);
  return add_up(task, parts[std::min<std::size_t>(task.part, last == 0 ? 0 : last - 1)]);
}

double TaskCosts::add_up(const Task& task, const CostCurve& curve) const {
  double seconds = 0;
  for (const std::uint32_t group : task.groups) {
    const double weight = task.groups.size() > 1 ? weight_of(group) : 1;
    for (const std::uint32_t piece : plan_.groups[group].pieces) {
      seconds += weight * curve.at(static_cast<double>(plan_.pieces[piece].num_elems));
    }
  }
  return seconds;
}

}  // namespace cinch::rt
