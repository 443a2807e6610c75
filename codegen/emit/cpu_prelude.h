// Which parts of the language's functions and of the prelude a CPU program needs. Parsing all of it
// would be a good part of the compile time.
#pragma once
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// The parts joined, in the order of their dependence.
std::string cpu_prelude(const kir::KernelProgram& program);

}  // namespace cinch::codegen
