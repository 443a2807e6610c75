// Where the values of a step lie on a device: the wire, sums, and f32 of the user's tensors where
// these lie elsewhere or are of another type.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {

class DeviceMemory {
 public:
  /// `plan` outlives this; `apart`: pieces that need memory for a result beside what it is made
  /// from; `gathered_bytes`: of gathering(). Errors: OutOfMemory, Device.
  static Result<DeviceMemory> make(const Plan& plan, std::uint32_t rank, const PieceList& apart,
                                   std::uint64_t gathered_bytes,
                                   std::shared_ptr<const GpuDevice> device, GpuStream stream);

  std::span<std::uint8_t> wire() const {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(  // NOLINT(performance-no-int-to-ptr)
        arena_.address(wire_));
    return {bytes, own_->wire_bytes};
  }
  /// Where payloads lie before they are put together.
  GpuAddress gathering() const { return arena_.address(gathering_); }

  GpuAddress slot(std::uint32_t slot) const {
    return arena_.address(wire_) + own_->slots[slot].offset;
  }
  /// 0 where no task of this rank sums the piece up, and for pieces of no elements.
  GpuAddress sum(std::uint32_t piece) const { return arena_.address(sums_[piece]); }
  GpuAddress apart(std::uint32_t piece) const { return arena_.address(apart_[piece]); }
  /// f32 of the gradient, later of the update: a plan reads no gradient after it wrote the update.
  /// The first call makes memory for all pieces. Errors: OutOfMemory, Device.
  Result<GpuAddress> values(std::uint32_t piece);
  /// The same as f16 or bf16.
  Result<GpuAddress> halves(std::uint32_t piece);

 private:
  // Memory for all pieces that is made when it is first asked for.
  struct Copies {
    GpuArena arena;
    bool is_made = false;
  };
  DeviceMemory(const Plan& plan, std::uint32_t rank, std::shared_ptr<const GpuDevice> device,
               GpuStream stream);
  Result<GpuAddress> copy_of(Copies& copies, std::int64_t element_bytes, std::uint32_t piece);

  const Plan* plan_;
  const RankPlan* own_;
  std::shared_ptr<const GpuDevice> device_;
  GpuStream stream_;
  GpuArena arena_;
  GpuArena::Piece wire_ = GpuArena::kNone, gathering_ = GpuArena::kNone;
  std::vector<GpuArena::Piece> sums_, apart_;  // by piece; kNone: none
  Copies values_, halves_;                     // an arena's pieces are the plan's
};

}  // namespace cinch::rt
