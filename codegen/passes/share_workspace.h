// Buffers of workspace that are never in use at the same time become one, as registers are given
// out: by live ranges over the steps of an entry.
//
//   before:  launch 0   writes @7          after:  launch 0   writes @7
//            launch 1   reads @7                   launch 1   reads @7
//            launch 2   writes @9                  launch 2   writes @7
#pragma once
#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Only arrays, of the same element type and the same number of elements; never what a step has to
/// itself (a condition, a counter, what ranks exchange). What a loop touches is in use in all of
/// it. A step for each buffer that is saved.
void share_workspace(kir::KernelProgram& program, rt::StepLimit& steps);

}  // namespace cinch::codegen
