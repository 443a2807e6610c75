// Turns a random rounding and its conversion to a short integer into one instruction: targets round
// in fixed point.
//
//   before:  %5: f32 = stochastic_round %4, %3 draw=1    after:  %6: i32 = stochastic_round %4, %3
//            %6: i32 = convert %5 dtype=i8                       dtype=i8 draw=1
#pragma once
#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// For f32, to integers of 2 to 32 bits, per element. If the rounded number itself is used, too,
/// its draw is the same. Counts one step for each conversion.
void round_to_integers(kir::KernelProgram& program, rt::StepLimit& steps);

}  // namespace cinch::codegen
