// Proves again the marks on which emitters rely.
#pragma once
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Throws an internal error with the program attached, if an instruction is marked alike or compact
/// and the kernel does not show it, or if parallel launches use what one of them writes. `stage`:
/// the last stage that ran.
void check_facts(const kir::KernelProgram& program, const std::string& stage);

}  // namespace cinch::codegen
