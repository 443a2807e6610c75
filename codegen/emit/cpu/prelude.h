// Which parts of the language's functions and of the prelude a CPU program needs whose text stands
// alone. Parsing all of it would be a good part of the compile time.
#pragma once
#include <span>
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// What `kernels` of the program need, in the order of their dependence.
std::string cpu_prelude(const kir::KernelProgram& program,
                        std::span<const kir::Kernel* const> kernels);

}  // namespace cinch::codegen
