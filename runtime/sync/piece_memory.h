// The part of a step's data that lies in one rank's host memory: the wire, and the user's tensors
// unless they lie on the rank's device.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/call/tensor_view.h"
#include "runtime/exec/aligned_buffer.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

class PieceMemory {
 public:
  /// `plan` outlives this. Errors: OutOfMemory.
  static Result<PieceMemory> make(const Plan& plan, std::uint32_t rank);

  /// Sets the tensors of a step, in the plan's order.
  void bind(std::span<const ConstTensorView> gradients, std::span<const TensorView> updates) {
    gradients_ = gradients;
    updates_ = updates;
  }

  ConstTensorView gradient(std::uint32_t piece) const;
  /// The update of a piece; only for pieces whose update this rank gets.
  TensorView update(std::uint32_t piece) const;

  std::span<std::uint8_t> bytes_of(std::uint32_t slot);
  std::span<std::uint8_t> wire() { return wire_.bytes(); }
  /// Bytes of the slot that are in use: all bytes if it has no length. Errors: CorruptPayload (a
  /// length beyond the slot's room).
  Result<std::uint64_t> used_bytes(std::uint32_t slot);
  void set_used_bytes(std::uint32_t slot, std::uint64_t bytes);

 private:
  PieceMemory(const Plan& plan, std::uint32_t rank)
      : plan_(&plan), own_(&plan.ranks[rank]), rank_(rank) {}

  const Plan* plan_;
  const RankPlan* own_;
  std::uint32_t rank_;
  AlignedBuffer wire_;
  std::span<const ConstTensorView> gradients_;
  std::span<const TensorView> updates_;
};

}  // namespace cinch::rt
