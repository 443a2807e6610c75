// Marks stores of selected elements as compact: an element's place is the begin of its group's
// output plus the number of selected elements before it. Storing lanes then write to neighbouring
// places, and a target may store them side by side.
//
//   before:  %6: u32, %7: u32 = running_sum %5 exclusive after:  %6: u32, %7: u32 = running_sum %5
//            %8: u32 = scalar.add %start, %6                      exclusive
//            store_at %8, %4, %5 @1                               %8: u32 = scalar.add %start, %6
//                                                                 store_at %8, %4, %5 @1 compact
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Sets Instr::is_compact for a store in an element section. Its place is the sum of a value of the
/// group and an exclusive running count of truths. Its condition is the counted truth, perhaps with
/// "the place is below a limit", which only cuts off the last ones.
void mark_compact(kir::KernelProgram& program);

}  // namespace cinch::codegen
