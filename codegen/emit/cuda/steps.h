// The kernels of a CUDA text, as calls of the functions that emit_cuda_kernel and emit_services
// wrote. Inside of the CUDA emitter.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/emit/cuda/units.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// A kernel for each unit of those that take many blocks, rt::kGpuServeSymbol, and
/// rt::kGpuStepsSymbol, which does all of them (and those of one block) as steps of a list. Appends
/// the kernels' symbols. `block_warps` as in CudaOptions.
std::string emit_kernels(const kir::KernelProgram& program, const std::vector<CudaUnit>& units,
                         std::uint32_t block_warps, std::vector<std::string>& symbols);

/// Warps of a block of rt::kGpuStepsSymbol: as many as every function can do with.
std::uint32_t steps_warps(const kir::KernelProgram& program, std::uint32_t block_warps);
/// Bytes that such a block shares: as many as the function that shares most.
std::uint32_t steps_shared_bytes(const kir::KernelProgram& program, std::uint32_t block_warps);

}  // namespace cinch::codegen
