// The parts of a CUDA program's text: functions that serve kernels, kernels that call these, and
// the services that begin and end calls. Inside of the CUDA emitter.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Kernels that are one function: those that do the same with other buffers and sizes. Searching a
/// list and searching everything, decoding and decoding on top of a sum have many such kernels.
struct CudaUnit {
  std::vector<std::size_t> kernels;  // by index, ascending
  /// The function NAME_body, which looks for its places by the step's kernel; named as the first
  /// kernel.
  std::string text;
};

/// In the order of their first kernels. Kernels of a unit are launched alike.
std::vector<CudaUnit> cuda_units(const kir::KernelProgram& program, std::uint32_t block_warps);

// ---- steps.cpp: the kernels, as calls of the functions ----

/// A kernel for each unit of those that take many blocks, rt::kGpuServeSymbol, and
/// rt::kGpuStepsSymbol, which does all of them (and those of one block) as steps of a list. Appends
/// the kernels' symbols. `block_warps` as in CudaOptions.
std::string emit_kernels(const kir::KernelProgram& program, const std::vector<CudaUnit>& units,
                         std::uint32_t block_warps, std::vector<std::string>& symbols);

/// Warps of a block of rt::kGpuStepsSymbol: as many as every function can do with.
std::uint32_t steps_warps(const kir::KernelProgram& program, std::uint32_t block_warps);
/// Bytes that such a block shares: as many as the function that shares most.
std::uint32_t steps_shared_bytes(const kir::KernelProgram& program, std::uint32_t block_warps);

// ---- wire.cpp: the services (rt::GpuService), which follow the program's wire ----

/// The program with an entry of size_exprs for every formula that these kernels read. Programs
/// that have them all are unchanged.
kir::KernelProgram with_call_sizes(const kir::KernelProgram& program);

/// The buffer that a state's buffer changes places with when a call succeeds; none for others.
std::optional<rt::BufferIndex> other_buffer(const kir::KernelProgram& program,
                                            rt::BufferIndex buffer);

/// All services. Throws InternalError{Limitation} where a size of the wire has no text for a GPU
/// (floats of counts, or more counts than a header's check word is made for).
std::string emit_services(const kir::KernelProgram& program);

}  // namespace cinch::codegen
