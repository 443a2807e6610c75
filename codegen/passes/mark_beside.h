// Marks launches that may run at the same time. A launch whose groups must come one after another
// takes one thread; its neighbours may run beside it if they use none of its data.
//
//   before:  zero @6              after:  zero @6
//            launch 0                     zero @7
//            zero @7                      launch 0 beside 1
//            launch 1                     launch 1
#pragma once
#include <span>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// May these launches run in any order, or at the same time? Yes if all are of sequential kernels
/// without checks, and no launch uses what another writes.
bool run_beside(const kir::KernelProgram& program, std::span<const rt::Step> launches);

/// Puts such launches side by side, after the zero fills that were between them, and sets their
/// number in the first one (rt::Step::index2).
void mark_beside(kir::KernelProgram& program);

}  // namespace cinch::codegen
