// Makes a program image of kernels: emits, compiles and assembles.
#pragma once
#include <functional>

#include "codegen/emit/cuda.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/kir/kir.h"
#include "runtime/image/image.h"

namespace cinch::codegen {

/// Compiles CUDA text to machine code for a GPU of the source's target (PTX if NVRTC is older than
/// the GPU), or to PTX of that architecture. Errors: those of compile_cuda.
rt::Result<std::vector<std::uint8_t>> nvrtc_binary(const KernelSource& source, bool is_ptx,
                                                   Effort effort = Effort::Full);

struct ImageOptions {
  bool count_accesses = false;    // CPUs: kernels count the bytes they read and write
  CompileTimes* times = nullptr;  // of CPUs
  std::uint32_t block_warps = CudaOptions{}.block_warps;  // CUDA
  // CUDA: PTX for the driver's compiler, which also serves later architectures
  bool is_ptx = false;
  Effort effort = Effort::Full;
  std::function<rt::Result<std::vector<std::uint8_t>>(const KernelSource&, bool is_ptx)>
      compile_cuda;  // none: nvrtc_binary
};

/// Is the program so long that quickly compiled code should serve somebody who waits? Always for
/// CUDA.
bool is_quick_worth_it(const kir::KernelProgram& program, const Target& target);

/// Everything in the image except the code.
rt::ProgramImage image_without_code(const kir::KernelProgram& program, std::string target);

/// The image of `program` for a CPU ("native" becomes the machine's level) or for CUDA, with a
/// cubin (PTX for an architecture newer than NVRTC) and the kernels' launches. Errors: Unavailable
/// (no compiler library, or a target without images), InvalidArgument (an architecture that NVRTC
/// neither knows nor has PTX for).
rt::Result<rt::ProgramImage> make_image(const kir::KernelProgram& program, const Target& target,
                                        const ImageOptions& options = {});

}  // namespace cinch::codegen
