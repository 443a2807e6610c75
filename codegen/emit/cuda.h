// CUDA emitter: kernels as header-free CUDA C++ for NVRTC (compile_cuda in codegen/jit/nvrtc.h).
// Assumes a verified program.
//
// A warp takes a tile of 1024 elements; a group longer than a tile is one warp's or one block's
// work, whatever its length gives. Launches are free in the number of blocks: kernels take groups
// in turn (ordered ones by tickets) until none is left.
#pragma once
#include <cstdint>
#include <string>

#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CudaOptions {
  std::string arch = "sm_90";     // goes into KernelSource::target; the text does not depend on it
  std::uint32_t block_warps = 8;  // 2, 4, 8 or 16; kernels may take fewer. Never changes a result
};

/// One translation unit: the KIR as a comment, the language's functions, the prelude, one `extern
/// "C"` kernel each, then those of rt::GpuService (runtime/image/gpu_abi.h says how all are
/// launched). The image's size_exprs are those of with_call_sizes (cuda/program.h). Throws
/// InternalError{Limitation} for what does not fit a GPU (shared memory of a block, sizes of a wire
/// that are floats of counts).
KernelSource emit_cuda(const kir::KernelProgram& given, const CudaOptions& options = {});

/// How a kernel is to be launched. One that takes a single block is no kernel of its own but a step
/// of rt::kGpuStepsSymbol.
rt::CudaLaunch cuda_launch(const kir::KernelProgram& program, const kir::Kernel& kernel,
                           const CudaOptions& options = {});
/// How rt::kGpuStepsSymbol is to be launched, but for its blocks.
rt::CudaLaunch cuda_steps_launch(const kir::KernelProgram& program,
                                 const CudaOptions& options = {});

}  // namespace cinch::codegen
