// Bodies of batches.h.
#include "runtime/gpu/batches.h"

#include <algorithm>

namespace cinch::rt {

std::vector<GpuBatch> batch_launches(const std::vector<PlannedLaunch>& steps,
                                     const std::function<bool(const PlannedLaunch&)>& is_narrow) {
  std::vector<GpuBatch> batches;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool narrow = is_narrow(steps[i]);
    if (narrow && !batches.empty() && batches.back().is_narrow) {
      ++batches.back().size;
    } else {
      batches.push_back({i, 1, narrow});
    }
  }
  return batches;
}

GpuStep gpu_step(const PlannedLaunch& planned) {
  GpuStep step;
  step.value = planned.value;
  step.kernel = planned.index;
  step.arg0 = planned.arg0;
  step.arg1 = planned.arg1;
  step.is_guarded = planned.is_guarded ? 1 : 0;
  step.num_conditions = static_cast<std::uint32_t>(planned.conditions.size());
  std::ranges::copy(planned.conditions, step.conditions);
  return step;
}

LaunchedKernel launched_kernel(const GpuProgram& program, const PlannedLaunch& first,
                               bool is_narrow) {
  const ProgramImage& image = program.image();
  if (!is_narrow && !first.is_service && !first.is_fold()) {
    const KernelInfo& kernel = image.kernels[first.index];
    return {program.kernel(first.index), kernel.symbol, kernel.cuda.block_threads,
            kernel.cuda.shared_bytes};
  }
  if (!is_narrow && first.is_service && is_plain_service(static_cast<GpuService>(first.index))) {
    return {program.serve(), kGpuServeSymbol, kGpuServiceThreads, 0};
  }
  return {program.steps(), kGpuStepsSymbol, image.gpu_steps_threads, image.gpu_steps_shared_bytes};
}

}  // namespace cinch::rt
