// The parts of a CUDA program's text besides its kernels' bodies: how the groups of a kernel are
// spread over threads, which entries of a launch's tables its function reads, and the functions
// that serve all kernels.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {
struct CudaShape {
  std::uint32_t block_warps = 8;
  std::uint32_t team_warps = 1;  // warps that share a group: 1, or all of the block
  std::uint32_t multiple =
      1;                  // neighbouring groups that one warp takes in turn (rows that share bytes)
  int result_levels = 0;  // TileResults: 0 groups of one tile, 1 up to 2^20 elements, 3 any
  std::uint32_t stage_bits = 0;  // widest packed store; 0 if there is none
  bool is_single_block = false;
  bool has_look_back = false;
  std::uint32_t shared_bytes = 0;  // of a block: room for all that the function shares
  // Blocks that a multiprocessor should hold at a time; compilers derive the registers of a thread
  // from it. 1 if the kernel is only a step.
  std::uint32_t resident_blocks = 1;
  std::uint32_t waves = 1;  // CudaLaunch::waves
  std::uint64_t groups_per_block() const {
    return team_warps > 1 ? 1 : std::uint64_t{block_warps} * multiple;
  }
};

/// `block_warps`: warps of a block if nothing needs fewer; a power of two, at least 2.
CudaShape cuda_shape(const kir::KernelProgram& program, const kir::Kernel& kernel,
                     std::uint32_t block_warps);

/// Element sections of up to this many instructions are printed a second time for whole rows.
inline constexpr std::size_t kTwiceInstrs = 64;

/// Rows of at most kMostShortRow elements share a warp, if their kernel allows it: so many lanes
/// have four elements each.
inline constexpr std::int64_t kMostShortRow = 64;
inline std::uint32_t short_row_lanes(std::int64_t len) {
  return std::bit_ceil(static_cast<std::uint32_t>((len + 3) / 4));
}

/// The most elements that a group can have.
std::int64_t longest_group(const kir::KernelProgram& program, const kir::Kernel& kernel);

/// Histograms of at most this many bins are counted in shared memory first.
inline constexpr std::uint64_t kSharedBins = 4096;

bool is_whole_element(const rt::BufferInfo& buffer);
/// The types that an instruction's combiner joins: those of its operands, buffers or local arrays.
std::vector<kir::ComputeType> combined_types(const kir::KernelProgram& program,
                                             const kir::Kernel& kernel, const kir::Instr& instr);

// The entries of a launch's tables (buffers, sizes, groups, states) that a kernel's function reads,
// numbered in the order of first mention. Kernels that do the same with other entries then have the
// same text, except for the lines that name the entries. Inside of the CUDA emitter.

class CudaPlaces {
 public:
  CudaPlaces(const kir::KernelProgram& program, const kir::Kernel& kernel);

  std::size_t kernel() const { return kernel_; }
  std::size_t number(rt::BufferIndex buffer) const;
  /// Expressions for a size, and for an entry of the table of sizes.
  std::string size(HostExprId expr);
  std::string size_entry(std::size_t index);

  /// The first lines of the function that serves the kernels `same`: constants with the entries of
  /// the step's kernel, the groups of the launch, and the buffers.
  static std::string lines(std::span<const CudaPlaces> same);
  /// Kernels can share a function only if these are equal.
  std::string kinds() const;

 private:
  std::string entry(std::string name, std::uint32_t index);
  std::string buffer_lines() const;

  const kir::KernelProgram& program_;
  std::size_t kernel_;
  std::vector<rt::BufferIndex> buffers_;
  std::vector<std::size_t> sizes_;
  std::vector<std::pair<std::string, std::uint32_t>> entries_;
};

/// The prelude's type of a buffer's elements: "Stored<Kind::F16, 16, 16>".
std::string stored_type(DType dtype, int storage_bits);

// The parts of a CUDA program's text: functions that serve kernels, kernels that call these, and
// the services that begin and end calls. Inside of the CUDA emitter.

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
