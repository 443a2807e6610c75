// Where the values of a step lie on one rank: the user's tensors, sums, and the wire.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/exec/aligned_buffer.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

class PieceMemory {
 public:
  /// `plan` outlives this; without `has_sums` these lie elsewhere. Errors: OutOfMemory.
  static Result<PieceMemory> make(const Plan& plan, std::uint32_t rank, bool has_sums = true);

  /// The tensors of a step, by the plan's list.
  void bind(std::span<const ConstTensorView> gradients, std::span<const TensorView> updates) {
    gradients_ = gradients;
    updates_ = updates;
  }

  ConstTensorView gradient(std::uint32_t piece) const;
  /// Of a piece whose update this rank gets.
  TensorView update(std::uint32_t piece) const;
  /// Empty where no task of this rank sums the piece up here.
  std::span<float> sum(std::uint32_t piece);
  TensorView value(std::uint32_t piece, Value which);

  std::span<std::uint8_t> bytes_of(std::uint32_t slot);
  /// Do payloads lie one behind the other, since the message is no longer than they are?
  bool is_packed(std::uint32_t slot) const { return own_->slots[slot].length != kNoSlot; }
  std::span<std::uint8_t> wire() { return wire_.bytes(); }
  /// Bytes of the slot that are in use: all of them where it has no length. Errors: CorruptPayload
  /// (more than there is room for).
  Result<std::uint64_t> used_bytes(std::uint32_t slot);
  void set_used_bytes(std::uint32_t slot, std::uint64_t bytes);

 private:
  PieceMemory(const Plan& plan, std::uint32_t rank)
      : plan_(&plan), own_(&plan.ranks[rank]), rank_(rank) {}

  const Plan* plan_;
  const RankPlan* own_;
  std::uint32_t rank_;
  AlignedBuffer wire_, sums_;
  std::vector<std::int64_t> sum_at_;  // by piece, in elements; -1: none
  std::span<const ConstTensorView> gradients_;
  std::span<const TensorView> updates_;
};

}  // namespace cinch::rt
