// Passes that mark instructions, kernels and steps with facts on which emitters rely, and the check
// that proves the marks again.
#pragma once
#include <span>
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Marks values as alike that are the same for the 128 elements of a row of a tile, like the norm
/// of their bucket. A target may compute such a value once for the row.
///
///   before:  %3: u32 = scalar.div %2, %512
///            %4: f32 = load_at %3 @1
///   after:   %3: u32 = scalar.div %2, %512 alike
///            %4: f32 = load_at %3 @1 alike
///
/// Sets Instr::is_alike, in kernels over tiles: for quotients of the element's number by a multiple
/// of 128, and for values that are computed or loaded from these and from values of the whole
/// group.
void mark_alike(kir::KernelProgram& program);

/// Marks stores of selected elements as compact: an element's place is the begin of its group's
/// output plus the number of selected elements before it. Storing lanes then write to neighbouring
/// places, and a target may store them side by side.
///
///   before:  %6: u32, %7: u32 = running_sum %5 exclusive
///            %8: u32 = scalar.add %start, %6
///            store_at %8, %4, %5 @1
///   after:   the same, and store_at %8, %4, %5 @1 compact
///
/// Sets Instr::is_compact for a store in an element section. Its place is the sum of a value of the
/// group and an exclusive running count of truths. Its condition is the counted truth, perhaps with
/// "the place is below a limit", which only cuts off the last ones.
void mark_compact(kir::KernelProgram& program);

/// Marks finishing kernels whose stored partials may be folded before they run (GpuFold of
/// runtime/image/kernel_abi.h).
///
///   before:  kernel finish "encode_scalars"
///   after:   kernel finish "encode_scalars"
///             foldable
///
/// Sets Kernel::is_foldable. A fold overwrites partials. So the partials must be written only by
/// the sweep after which the kernel always runs, nothing else may read them, and their buffers must
/// hold unpacked results. The fold does a part of the kernel's reductions and nothing else, so
/// their inputs must be ready before the kernel. Run this before share_workspace, which lets others
/// use the buffers of partials that are no longer needed.
void mark_foldable(kir::KernelProgram& program);

/// May these launches run in any order, or at the same time? Yes if all are of sequential kernels
/// without checks, and no launch uses what another writes.
bool run_beside(const kir::KernelProgram& program, std::span<const rt::Step> launches);

/// Marks launches that may run at the same time. A launch whose groups must come one after another
/// takes one thread; its neighbours may run beside it if they use none of its data.
///
///   before:  zero @6              after:  zero @6
///            launch 0                     zero @7
///            zero @7                      launch 0 beside 1
///            launch 1                     launch 1
///
/// Puts such launches side by side, after the zero fills that were between them, and sets their
/// number in the first one (rt::Step::index2).
void mark_beside(kir::KernelProgram& program);

/// Proves the marks again on which emitters rely. Throws an internal error with the program
/// attached, if an instruction is marked alike or compact and the kernel does not show it, or if
/// parallel launches use what one of them writes. `stage`: the last stage that ran.
void check_facts(const kir::KernelProgram& program, const std::string& stage);

}  // namespace cinch::codegen
