// Makes states that encode updates overwrite their present values. That saves a buffer as large as
// the state. It costs a sweep over the gradient if nothing else reads all of it before the update:
// a non-finite value must be found before the first write.
//
//   before:  launch 0   encode_sweep      reads g, state; writes state', fields; checks finite
//   after:   launch 1   encode_check      reads g; checks finite
//            launch 0   encode_sweep      reads g, state; writes state, fields
//
// A state is updated in place if
// - one kernel, launched once, writes all its new values, each after the same lane has read the
// present values that it needs, and nothing else reads present values later;
// - no check of the program can fail in that kernel or later;
// - it has whole elements, and only encode changes it.
// From the first such kernel on, the call runs to its end even if its caller cancels it.
#pragma once
#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

// Counts one step for each state.
void update_in_place(kir::KernelProgram& program, rt::StepLimit& steps);

}  // namespace cinch::codegen
