// Groups the steps of a call into launches. A step that needs at most one block of a tensor shares
// a launch with its neighbours.
#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "runtime/gpu/plan.h"
#include "runtime/gpu/program.h"

namespace cinch::rt {

/// One launch for the steps begin .. begin + size of a call.
struct GpuBatch {
  std::size_t begin = 0, size = 1;
  bool is_narrow = false;  // one block for each tensor; else a single step with many blocks
};

/// Returns as few launches as possible, in order.
std::vector<GpuBatch> batch_launches(const std::vector<PlannedLaunch>& steps,
                                     const std::function<bool(const PlannedLaunch&)>& is_narrow);

/// Returns the step in the form that the device reads.
GpuStep gpu_step(const PlannedLaunch& planned);

struct LaunchedKernel {
  GpuFunction function = nullptr;
  std::string_view symbol;
  std::uint32_t threads = 0, shared_bytes = 0;  // per block
};
/// Returns the kernel that launches a batch whose first step is `first`.
LaunchedKernel launched_kernel(const GpuProgram& program, const PlannedLaunch& first,
                               bool is_narrow);

}  // namespace cinch::rt
