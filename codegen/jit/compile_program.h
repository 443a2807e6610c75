// From kernels to something that runs: emits, compiles and assembles a program image.
#pragma once
#include <cstdint>
#include <functional>

#include "codegen/emit/cuda.h"
#include "codegen/emit/kernel_source.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/kir/kir.h"
#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::codegen {

/// Machine code of CUDA text for a GPU of the source's target (PTX where NVRTC is older than the
/// GPU), or PTX of that architecture. Errors: those of compile_cuda.
rt::Result<std::vector<std::uint8_t>> nvrtc_binary(const KernelSource& source, bool is_ptx);
/// The same, sooner (CudaEffort).
rt::Result<std::vector<std::uint8_t>> quick_nvrtc_binary(const KernelSource& source, bool is_ptx);

struct ImageOptions {
  bool count_accesses = false;    // CPUs: kernels count the bytes they read and write
  CompileTimes* times = nullptr;  // of CPUs
  std::uint32_t block_warps = CudaOptions{}.block_warps;  // CUDA
  bool is_ptx = false;  // CUDA: text for the driver's compiler, also of architectures to come
  std::function<rt::Result<std::vector<std::uint8_t>>(const KernelSource&, bool is_ptx)>
      compile_cuda = nvrtc_binary;
};

/// All of the image but the code.
rt::ProgramImage image_without_code(const kir::KernelProgram& program, std::string target);

/// The image of `program` for a CPU ("native" is resolved to the machine's level) or for CUDA, with
/// a cubin (PTX for an architecture newer than NVRTC) and the kernels' launches.
/// Errors: Unavailable (no compiler library, or a target that has no images), InvalidArgument (an
/// architecture that NVRTC neither knows nor has PTX for).
rt::Result<rt::ProgramImage> make_image(const kir::KernelProgram& program, const Target& target,
                                        const ImageOptions& options = {});

}  // namespace cinch::codegen
