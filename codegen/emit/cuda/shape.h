// How a kernel's groups are spread over threads, and the shared memory that this takes. Inside of
// the CUDA emitter.
#pragma once
#include <cstdint>

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
  std::uint32_t shared_bytes = 0;  // of a block's launch: room for all that the function shares
  // Blocks that a multiprocessor is to hold: by that compilers choose how many registers a thread
  // gets. 1 where the kernel is a step only.
  std::uint32_t resident_blocks = 1;
  std::uint32_t waves = 1;  // CudaLaunch::waves
  std::uint64_t groups_per_block() const {
    return team_warps > 1 ? 1 : std::uint64_t{block_warps} * multiple;
  }
};

/// `block_warps`: of a block where nothing asks for fewer; a power of two, at least 2.
CudaShape cuda_shape(const kir::KernelProgram& program, const kir::Kernel& kernel,
                     std::uint32_t block_warps);

/// Element sections of up to this size are printed once more for whole rows.
inline constexpr std::size_t kTwiceInstrs = 64;

/// Elements of a group, at most.
std::int64_t longest_group(const kir::KernelProgram& program, const kir::Kernel& kernel);

/// Histograms of at most this many bins are counted in shared memory first.
inline constexpr std::uint64_t kSharedBins = 4096;

bool is_whole_element(const rt::BufferInfo& buffer);
/// The types that an instruction's combiner joins: of its operands, its buffers or its local
/// arrays.
std::vector<kir::ComputeType> combined_types(const kir::KernelProgram& program,
                                             const kir::Kernel& kernel, const kir::Instr& instr);

}  // namespace cinch::codegen
