// Which finishing kernels may have their stored partials folded before (GpuFold of
// runtime/image/gpu_abi.h). Inside of the CUDA emitter.
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// `kernel` is one of the program's. A fold writes over partials: only where nothing but the sweep
/// behind which the kernel always runs writes them, where nothing else reads them, and where their
/// buffers hold results as they are. It does the kernel's reductions in part and nothing else: what
/// they depend on must be there before the kernel.
bool is_foldable(const kir::KernelProgram& program, const kir::Kernel& kernel);

}  // namespace cinch::codegen
