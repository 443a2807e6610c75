// Runs all passes over kernels in order, each followed by the checker of buffer contents.
#pragma once
#include "codegen/kir/kir.h"
#include "codegen/passes/state_update.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Throws InternalError if a pass leaves a plan that would read data that are not there.
void run_kernel_passes(kir::KernelProgram& program, StateUpdate states, rt::StepLimit& steps);

}  // namespace cinch::codegen
