// What a loop carries is written where it lies, where one thread computes it from all that it
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

/// Of scalars alone: a kernel of a single group that loads, computes and stores, the last of a
/// round that touches what is carried. Its stores go behind its loads. A step for each copy that is
/// saved.
void carry_in_place(kir::KernelProgram& program, rt::StepLimit& steps);

}  // namespace cinch::codegen
