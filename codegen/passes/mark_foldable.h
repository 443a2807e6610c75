// Marks finishing kernels whose stored partials may be folded before they run (GpuFold of
// runtime/image/kernel_abi.h).
//
//   before:  kernel finish "encode_scalars"
//   after:   kernel finish "encode_scalars"
//             foldable
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Sets Kernel::is_foldable. A fold overwrites partials. So the partials must be written only by
/// the sweep after which the kernel always runs, nothing else may read them, and their buffers must
/// hold unpacked results. The fold does a part of the kernel's reductions and nothing else, so
/// their inputs must be ready before the kernel. Run this before share_workspace, which lets others
/// use the buffers of partials that are no longer needed.
void mark_foldable(kir::KernelProgram& program);

}  // namespace cinch::codegen
