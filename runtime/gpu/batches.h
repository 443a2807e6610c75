// The steps of a call as launches: what needs no more than one block of a tensor shares a launch
// with its neighbours.
#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "runtime/gpu/plan.h"
#include "runtime/gpu/program.h"

namespace cinch::rt {

/// Steps begin .. begin + size of a call, in one launch.
struct GpuBatch {
  std::size_t begin = 0, size = 1;
  bool is_narrow = false;  // one block for each tensor; else a single step, with many
};

/// As few as there can be, in order.
std::vector<GpuBatch> batch_launches(const std::vector<PlannedLaunch>& steps,
                                     const std::function<bool(const PlannedLaunch&)>& is_narrow);

/// As the device reads it.
GpuStep gpu_step(const PlannedLaunch& planned);

struct LaunchedKernel {
  GpuFunction function = nullptr;
  std::string_view symbol;
  std::uint32_t threads = 0, shared_bytes = 0;  // of a block
};
/// By what a batch that begins with `first` is launched.
LaunchedKernel launched_kernel(const GpuProgram& program, const PlannedLaunch& first,
                               bool is_narrow);

}  // namespace cinch::rt
