// The marks that emitters believe, proved again.
#pragma once
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Refuses, as an internal error with the program attached, a program with an instruction that is
/// marked alike or compact where the kernel as it stands does not show it, or with launches beside
/// one another that touch what one of them writes. `stage`: what ran last.
void check_facts(const kir::KernelProgram& program, const std::string& stage);

}  // namespace cinch::codegen
