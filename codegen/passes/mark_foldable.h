// Which finishing kernels may have their stored partials folded before (GpuFold of
// runtime/image/kernel_abi.h).
//
//   before:  kernel finish "encode_scalars"
//   after:   kernel finish "encode_scalars"
//             foldable
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Sets Kernel::is_foldable. A fold writes over partials: only where nothing but the sweep behind
/// which the kernel always runs writes them, where nothing else reads them, and where their buffers
/// hold results as they are. It does the kernel's reductions in part and nothing else: what they
/// depend on must be there before the kernel. Before share_workspace, which lets others use the
/// buffers of partials that are done with.
void mark_foldable(kir::KernelProgram& program);

}  // namespace cinch::codegen
