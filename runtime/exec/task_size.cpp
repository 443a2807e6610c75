// How many groups of a launch one task takes.
#include <algorithm>

#include "runtime/core/sizes/host_expr.h"
#include "runtime/exec/executor.h"

namespace cinch::rt {
namespace {

// If the image has no formula: a tile that is read and written.
constexpr std::int64_t kGroupBytesGuess = 8192;
// A task of an ordered kernel takes one chunk (kMaxChunk of codegen/prelude/cpu/ordered.h). It
// publishes the chunk's sum as soon as it has it; the sum of a second chunk in the task would have
// to wait for the first to end.
constexpr std::uint64_t kOrderedGroups = 32;

std::uint64_t group_bytes(const LaunchSize& launch) {
  const KernelInfo& kernel = launch.kernel;
  if (!kernel.bytes_read.is_valid() || !kernel.bytes_written.is_valid()) return kGroupBytesGuess;
  const auto read = launch.exprs.eval_int(kernel.bytes_read, launch.env);
  const auto written = launch.exprs.eval_int(kernel.bytes_written, launch.env);
  if (!read || !written) return kGroupBytesGuess;
  const auto at_least_none = [](std::int64_t bytes) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
  };
  const std::uint64_t bytes = at_least_none(*read) + at_least_none(*written);
  return std::max<std::uint64_t>(bytes / launch.num_groups, 1);
}

// A task should be worth its start (about 1 µs), and each thread should get several. For small
// launches, few tasks are better than tasks that are not worth their start.
std::uint64_t tuned_groups(const LaunchSize& launch, const CpuTuning& tuning) {
  const std::uint64_t each_bytes = group_bytes(launch);
  const auto single = static_cast<std::uint64_t>(tuning.single_task_bytes) / each_bytes;
  if (launch.num_groups <= single) return launch.num_groups;
  const auto worth = static_cast<std::uint64_t>(tuning.task_bytes) / each_bytes;
  const auto tasks = static_cast<std::uint64_t>(tuning.tasks_per_thread) * launch.threads;
  return std::clamp<std::uint64_t>(launch.num_groups / tasks, 1, std::max<std::uint64_t>(worth, 1));
}

}  // namespace

std::uint64_t groups_per_task(const LaunchSize& launch, const ExecutorOptions& options) {
  if (launch.kernel.is_sequential) return launch.num_groups;
  std::uint64_t groups = options.groups_per_task;
  if (groups == 0) groups = tuned_groups(launch, options.tuning);
  if (launch.kernel.is_ordered && options.groups_per_task == 0 && launch.threads > 1) {
    groups = std::min(groups, kOrderedGroups);
  }
  const std::uint64_t multiple = launch.kernel.group_multiple;
  groups = std::min(groups, launch.num_groups);
  return (groups + multiple - 1) / multiple * multiple;
}

}  // namespace cinch::rt
