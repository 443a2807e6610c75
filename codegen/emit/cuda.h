// CUDA emitter: kernels as header-free CUDA C++ for NVRTC (compile_cuda in codegen/jit/nvrtc.h).
// The program must be verified.
//
// A warp takes a tile of 1024 elements. A warp or a block takes a group that is longer than a tile,
// depending on its length. A launch may have any number of blocks: kernels take groups in turn
// (ordered kernels by tickets) until none is left.
#pragma once

#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CudaOptions {
  std::string arch = "sm_90";     // becomes KernelSource::target; the text does not depend on it
  std::uint32_t block_warps = 8;  // 2, 4, 8 or 16; kernels may take fewer. Never changes a result
};

/// Prints one translation unit: the KIR as a comment, the language's functions, the prelude, an
/// `extern "C"` kernel for each kernel, and the kernels of rt::GpuService. runtime/image/gpu_abi.h
/// says how all are launched. The image's size_exprs are those of with_call_sizes (cuda/program.h).
/// Throws InternalError{Limitation} if something does not fit a GPU: the shared memory of a block,
/// or sizes of a wire that are floats of counts.
KernelSource emit_cuda(const kir::KernelProgram& given, const CudaOptions& options = {});

/// How to launch a kernel. A kernel of a single block is a step of rt::kGpuStepsSymbol.
rt::CudaLaunch cuda_launch(const kir::KernelProgram& program, const kir::Kernel& kernel,
                           const CudaOptions& options = {});
/// How to launch rt::kGpuStepsSymbol; the caller chooses the number of blocks.
rt::CudaLaunch cuda_steps_launch(const kir::KernelProgram& program,
                                 const CudaOptions& options = {});

}  // namespace cinch::codegen
