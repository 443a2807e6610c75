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

/// Kernels that share a function, because they do the same with other buffers and sizes. Searching
/// a list and searching everything, or decoding and decoding on top of a sum, have many such
/// kernels.
struct CudaUnit {
  std::vector<std::size_t> kernels;  // by index, ascending
  /// The function NAME_body, named after the first kernel. It looks up its places by the step's
  /// kernel.
  std::string text;
};

/// Units are in the order of their first kernels. The kernels of a unit are launched alike.
std::vector<CudaUnit> cuda_units(const kir::KernelProgram& program, std::uint32_t block_warps);

// ---- steps.cpp: the kernels, as calls of the functions ----

/// Prints a kernel for each unit that takes many blocks, rt::kGpuServeSymbol, and
/// rt::kGpuStepsSymbol. The last runs any of the functions, also those of one block, as steps of a
/// list. Appends the kernels' symbols. `block_warps` as in CudaOptions.
std::string emit_kernels(const kir::KernelProgram& program, const std::vector<CudaUnit>& units,
                         std::uint32_t block_warps, std::vector<std::string>& symbols);

/// Warps of a block of rt::kGpuStepsSymbol, enough for every function.
std::uint32_t steps_warps(const kir::KernelProgram& program, std::uint32_t block_warps);
/// Shared bytes of such a block, enough for every function.
std::uint32_t steps_shared_bytes(const kir::KernelProgram& program, std::uint32_t block_warps);

// ---- wire.cpp: the services (rt::GpuService), which follow the program's wire ----

/// The program with an entry of size_exprs for every formula that the services read. Unchanged if
/// it has all entries.
kir::KernelProgram with_call_sizes(const kir::KernelProgram& program);

/// The buffer with which a state's buffer changes places when a call succeeds; none for other
/// buffers.
std::optional<rt::BufferIndex> other_buffer(const kir::KernelProgram& program,
                                            rt::BufferIndex buffer);

/// Prints all services. Throws InternalError{Limitation} if a size of the wire has no text for a
/// GPU: floats of counts, or more counts than a header's check word covers.
std::string emit_services(const kir::KernelProgram& program);

}  // namespace cinch::codegen
