// A selected element goes to where its group begins, plus the number of selected ones before it:
// the lanes that store go to neighbouring places, and a target may store them side by side.
//
//   before:  %6: u32, %7: u32 = running_sum %5 exclusive after:  %6: u32, %7: u32 = running_sum %5
//            %8: u32 = scalar.add %start, %6                      exclusive
//            store_at %8, %4, %5 @1                               %8: u32 = scalar.add %start, %6
//                                                                 store_at %8, %4, %5 @1 compact
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Sets Instr::is_compact: of a store in an element section at the sum of what its group shares and
/// an exclusive running count of truths, where the counted truth holds, or that and "the place is
/// below a limit", which only cuts off the last ones.
void mark_compact(kir::KernelProgram& program);

}  // namespace cinch::codegen
