// Launches whose groups must come one after another take one thread each. Neighbours of them that
// touch nothing of one another may run at the same time.
//
//   before:  zero @6              after:  zero @6
//            launch 0                     zero @7
//            zero @7                      launch 0 beside 1
//            launch 1                     launch 1
#pragma once
#include <span>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// May these launches run in any order, or at the same time? All are of sequential kernels without
/// checks, and what one of them writes no other touches.
bool run_beside(const kir::KernelProgram& program, std::span<const rt::Step> launches);

/// Puts such launches side by side, behind the fills with zeros that stood between them, and says
/// at the first one how many they are (rt::Step::index2).
void mark_beside(kir::KernelProgram& program);

}  // namespace cinch::codegen
