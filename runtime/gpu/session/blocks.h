// How many blocks each launch of a session on a GPU takes, where those of each tensor begin, and
// what needs no more than one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/gpu/session/core.h"
#include "runtime/gpu/session/memory.h"

namespace cinch::rt {

class GpuBlocks : public GpuSessionPart {
 public:
  GpuBlocks(GpuSessionCore& core, GpuSessionMemory& memory)
      : GpuSessionPart(core), memory_(memory) {}

  // ---- opening, in this order ----
  /// Asks for memory of the table.
  void measure();
  Status count();
  /// Makes launches of the steps that were planned.
  void batch_steps();
  Status send(GpuStream stream);

  // ---- launches ----
  std::uint32_t num_blocks(const PlannedLaunch& step) const { return num_blocks_[shape_of(step)]; }
  /// Where the launch finds the first block of each tensor; 0 of one tensor.
  GpuAddress first_block(const PlannedLaunch& step) const;

 private:
  /// Launches that take the same blocks: of a kernel, then of services, folds, seals and fills.
  std::size_t num_shapes() const { return image().kernels.size() + 4; }
  std::size_t shape_of(const PlannedLaunch& step) const;
  Result<std::int64_t> blocks_of(std::size_t shape, std::size_t tensor) const;
  Result<std::int64_t> kernel_blocks(std::size_t kernel, const TensorFacts& tensor) const;
  std::int64_t that_fit(std::int64_t blocks, std::int64_t resident) const;
  std::int64_t service_blocks(const TensorFacts& tensor) const;
  std::int64_t fold_blocks(const TensorFacts& tensor) const;
  std::int64_t fill_blocks(const TensorFacts& tensor) const;
  std::int64_t seal_blocks(std::size_t tensor) const;
  bool are_fields_in_place() const;
  bool is_narrow(const PlannedLaunch& step) const;
  bool is_narrow_service(const PlannedLaunch& step) const;

  GpuSessionMemory& memory_;
  GpuArena::Piece first_blocks_ = GpuArena::kNone;  // of one tensor there is no table
  // By shape: blocks; where those of each tensor begin, as num_tensors + 1 words; and whether no
  // tensor has more than one.
  std::vector<std::uint32_t> num_blocks_, block_begins_;
  std::vector<bool> is_narrow_shape_;
};

}  // namespace cinch::rt
