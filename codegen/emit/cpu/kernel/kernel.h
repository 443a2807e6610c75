// One kernel of a CPU program as text. Inside of the CPU emitter; cpu.h is the interface.
//
// The function consists of buffers and sizes; the kernel section; combiners and draw streams; the
// loop over groups, cut into phases (facts.h); and what the task reports at its end.
#pragma once

#include "codegen/emit/cpu.h"

namespace cinch::codegen {

/// The text of the kernel's function.
std::string emit_cpu_kernel(const kir::KernelProgram& program, const kir::Kernel& kernel,
                            const CpuOptions& options);

}  // namespace cinch::codegen
