// CUDA emitter: kernels as header-free CUDA C++ for NVRTC (compile_cuda in codegen/jit/nvrtc.h).
// Assumes a verified program.
//
// A warp takes a tile of 1024 elements; a group longer than a tile is one warp's or one block's
// work, whatever its length gives. Launches are free in the number of blocks: kernels take groups
// in turn (ordered ones by tickets) until none is left.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CudaOptions {
  std::string arch = "sm_90";  // goes into KernelSource::target; the text does not depend on it
};

/// One translation unit: the KIR as a comment, the language's functions, the prelude, one `extern
/// "C"` kernel each. Throws InternalError{Limitation} for what does not fit a GPU (shared memory of
/// a block, parameter space).
KernelSource emit_cuda(const kir::KernelProgram& program, const CudaOptions& options = {});

/// How a kernel is to be launched.
rt::CudaLaunch cuda_launch(const kir::KernelProgram& program, const kir::Kernel& kernel);

/// Byte offsets in the one parameter of every kernel of a program, `struct CinchArgs`: pointers of
/// all buffers by BufferIndex, values of size_exprs, parameters (both as in rt::KernelArgs), the
/// eight words of draws, status words, number of groups of the launch.
struct CudaArgsLayout {
  std::size_t buffers = 0, sizes = 0, params = 0, draw = 0, status = 0, num_groups = 0;
  std::size_t size_bytes = 0;
};
CudaArgsLayout cuda_args_layout(const kir::KernelProgram& program);

}  // namespace cinch::codegen
