// All passes over kernels, in their order, each followed by the checker of what lies where.
#pragma once
#include "codegen/kir/kir.h"
#include "codegen/passes/state_update.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Throws InternalError where a pass leaves a plan that would read what is not there.
void run_kernel_passes(kir::KernelProgram& program, StateUpdate states, rt::StepLimit& steps);

}  // namespace cinch::codegen
