// Turns running sums of ones and zeros into counts of truths, which targets compute from bits.
//
//   before:  %7: u32 = scalar select %5, %one, %zero    after:  %8: u32, %9: u32 = running_sum %5
//            %8: u32, %9: u32 = running_sum %7
#pragma once
#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Also handles conversions from bool. Counts one step for each sum.
void count_truths(kir::KernelProgram& program, rt::StepLimit& steps);

}  // namespace cinch::codegen
