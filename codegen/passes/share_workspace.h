// Merges workspace buffers that are never in use at the same time, like register allocation: by
// live ranges over the steps of an entry.
//
//   before:  launch 0   writes @7          after:  launch 0   writes @7
//            launch 1   reads @7                   launch 1   reads @7
//            launch 2   writes @9                  launch 2   writes @7
#pragma once
#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Only arrays of the same element type and number of elements; never a step's private data (a
/// condition, a counter, what ranks exchange). A buffer that a loop uses is in use in the whole
/// loop. Counts one step for each buffer that is saved.
void share_workspace(kir::KernelProgram& program, rt::StepLimit& steps);

}  // namespace cinch::codegen
