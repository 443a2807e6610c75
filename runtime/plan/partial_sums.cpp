// Bodies of partial_sums.h.
#include "runtime/plan/partial_sums.h"

#include <algorithm>

namespace cinch::rt {
namespace {

bool makes_partial_sums(const Task& task) {
  if (task.kind == TaskKind::Add) return true;
  if (task.kind != TaskKind::Encode) return false;
  return task.site == Site::Hop || (task.is_dense && task.from == Value::Gradient);
}

}  // namespace

std::optional<std::uint32_t> find_refusing_codec(const Plan& plan,
                                                 const std::vector<bool>& takes_partial_sums) {
  if (std::ranges::find(takes_partial_sums, false) == takes_partial_sums.end()) return std::nullopt;
  for (const RankPlan& rank : plan.ranks) {
    for (const Task& task : rank.tasks) {
      if (!makes_partial_sums(task)) continue;
      for (const std::uint32_t group : task.groups) {
        const std::uint32_t codec = plan.groups[group].codec;
        if (codec != kDense && !takes_partial_sums[codec]) return codec;
      }
    }
  }
  return std::nullopt;
}

}  // namespace cinch::rt
