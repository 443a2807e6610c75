// One kernel of a CUDA program as text. Inside of the CUDA emitter; cuda.h is the interface.
//
// The function is a template over the warps of a block. It consists of buffers and shared memory;
// the kernel section; streams of draws and combiners; the loop over this team's groups, with their
// sections in order; and the end (flags, histograms).
#pragma once

#include "codegen/emit/cuda/shape.h"

namespace cinch::codegen {

/// A kernel's function. The lines of its places belong between both parts of its text.
struct CudaFunction {
  std::string front, back;
  CudaPlaces places;
};

/// Prints the tuples of reductions, the struct of the block's shared data, and the function
/// NAME_body, which the kernels of cuda/program.h call.
CudaFunction emit_cuda_kernel(const kir::KernelProgram& program, const kir::Kernel& kernel,
                              std::uint32_t block_warps, std::string name);

}  // namespace cinch::codegen
