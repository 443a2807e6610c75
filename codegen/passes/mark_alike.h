// What is the same for the 128 elements of a row of a tile, like the norm of the bucket that they
// are in, is said to be alike: a target may compute it once for the row.
//
//   before:  %3: u32 = scalar.div %2, %512               after:  %3: u32 = scalar.div %2, %512
//   alike
//            %4: f32 = load_at %3 @1                             %4: f32 = load_at %3 @1 alike
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Sets Instr::is_alike, in kernels over tiles: quotients of the element's number by a multiple of
/// 128, and what is computed or loaded from them and from what the whole group shares.
void mark_alike(kir::KernelProgram& program);

}  // namespace cinch::codegen
