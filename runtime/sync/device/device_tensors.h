// The user's tensors of a rank, and the sums that its tasks make, as lists of sessions take them.
// The tensors lie in memory of the host or of the device, as f32 or narrower.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/device/device_memory.h"
#include "runtime/sync/piece_memory.h"

namespace cinch::rt {

class DeviceTensors {
 public:
  struct Options {
    bool has_tensors = true;   // as in DeviceTaskOptions
    bool is_deferred = false;  // does a task end when its work is on the stream?
  };
  /// All outlive this.
  DeviceTensors(const Plan& plan, ComputeDevice& device, DeviceMemory& memory, Options options);

  /// Forgets what the step before has made of the gradients.
  void begin_step() { has_gradient_.assign(plan_.pieces.size(), false); }

  std::int64_t num_elems(std::uint32_t piece) const { return plan_.pieces[piece].num_elems; }
  std::size_t f32_bytes(std::uint32_t piece) const {
    return static_cast<std::size_t>(num_elems(piece)) * 4;
  }
  TensorView f32_view(std::uint8_t* data, std::uint32_t piece) const {
    return {data, kF32, num_elems(piece)};
  }

  std::span<float> sum_of(std::uint32_t piece) const;
  ConstTensorView value_of(std::uint32_t piece, Value which, PieceMemory& memory) const;
  /// The value in a form that lists take.
  Result<ConstTensorView> source(std::uint32_t piece, Value which, PieceMemory& memory);
  /// The value as f32, copied and converted if need be.
  Result<const std::uint8_t*> f32_source(std::uint32_t piece, Value which, PieceMemory& memory);
  /// Sets `targets` to the arrays to which lists write a value of each piece.
  Status find_targets(const PieceList& pieces, Value which, PieceMemory& memory,
                      std::vector<TensorView>& targets);
  /// Copies updates from `from`, by piece, to the user's tensors, which hold them when the step
  /// ends.
  Status give_updates(std::span<const std::uint32_t> pieces, std::span<const TensorView> from,
                      PieceMemory& memory);

 private:
  Status copy_values(std::uint32_t piece, ConstTensorView view);
  Result<TensorView> target(std::uint32_t piece, Value which, PieceMemory& memory);
  Status narrow_updates(std::span<const std::uint32_t> pieces, std::span<const TensorView> from,
                        DType dtype, PieceMemory& memory);
  Status give_update(std::uint32_t piece, const TensorView& from, PieceMemory& memory);
  /// `which`: twice the piece, plus one for its update.
  Status check_user(const void* data, std::size_t which);

  const Plan& plan_;
  ComputeDevice& device_;
  DeviceMemory& memory_;
  Options options_;
  std::vector<bool> has_gradient_;  // by piece: has this step made its f32?
  // By check_user's number: the last address that was the device's
  std::vector<const void*> checked_;
  std::vector<ArrayPair> pairs_;  // of the running call; keeps its memory
};

}  // namespace cinch::rt
