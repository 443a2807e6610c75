// Which kernels of a CUDA program are one function: those that do the same with other buffers and
// sizes. Searching a list and searching everything, decoding and decoding on top of a sum have many
// such kernels. Inside of the CUDA emitter.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CudaUnit {
  std::vector<std::size_t> kernels;  // by index, ascending
  /// The function NAME_body, which looks for its places by the step's kernel; named as the first
  /// kernel.
  std::string text;
};

/// In the order of their first kernels. Kernels of a unit are launched alike.
std::vector<CudaUnit> cuda_units(const kir::KernelProgram& program, std::uint32_t block_warps);

}  // namespace cinch::codegen
