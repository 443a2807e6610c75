// Writes values that a loop carries in place, if one thread computes them from everything that it
// reads.
//
//   before:  for @1 {                      after:  for @1 {
//             launch 3   reads @5,                  launch 3   reads @5, writes @5
//                        writes @6                 }
//             copy @5 from @6
//            }
#pragma once
#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Only for scalars: a kernel of a single group that loads, computes and stores, and is the last of
/// a round to use the carried values. Its stores move behind its loads. Counts one step for each
/// copy that is saved.
void carry_in_place(kir::KernelProgram& program, rt::StepLimit& steps);

}  // namespace cinch::codegen
