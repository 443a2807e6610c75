// How the groups of a kernel are spread over threads, and how much shared memory that takes. Inside
// of the CUDA emitter.
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

/// The most elements that a group can have.
std::int64_t longest_group(const kir::KernelProgram& program, const kir::Kernel& kernel);

/// Histograms of at most this many bins are counted in shared memory first.
inline constexpr std::uint64_t kSharedBins = 4096;

bool is_whole_element(const rt::BufferInfo& buffer);
/// The types that an instruction's combiner joins: those of its operands, buffers or local arrays.
std::vector<kir::ComputeType> combined_types(const kir::KernelProgram& program,
                                             const kir::Kernel& kernel, const kir::Instr& instr);

}  // namespace cinch::codegen
