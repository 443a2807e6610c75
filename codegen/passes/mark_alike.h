// Marks values as alike that are the same for the 128 elements of a row of a tile, like the norm of
// their bucket. A target may compute such a value once for the row.
//
//   before:  %3: u32 = scalar.div %2, %512               after:  %3: u32 = scalar.div %2, %512
//   alike
//            %4: f32 = load_at %3 @1                             %4: f32 = load_at %3 @1 alike
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Sets Instr::is_alike, in kernels over tiles: for quotients of the element's number by a multiple
/// of 128, and for values that are computed or loaded from these and from values of the whole
/// group.
void mark_alike(kir::KernelProgram& program);

}  // namespace cinch::codegen
