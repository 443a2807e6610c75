// The user's tensors of one step: what tasks read and write in their place where they are scaled,
// and whether gradients are finite, where the user wants to know.
#pragma once
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/device/compute_device.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/step_memory.h"

namespace cinch::rt {

struct TensorFactors {
  /// Gradients are so many times what is synchronised, and updates are made so many times what
  /// comes of it.
  double scale = 1;
  /// Updates are sums over ranks and not their means.
  bool is_sum = false;
  bool looks_for_non_finite = false;
};

class StepTensors {
 public:
  /// Tensors are the memory of `device`, which outlives this, as `plan` does. Of a host nobody else
  /// uses it.
  StepTensors(const Plan& plan, std::uint32_t rank, ComputeDevice& device);
  ~StepTensors();
  StepTensors(const StepTensors&) = delete;
  StepTensors& operator=(const StepTensors&) = delete;

  /// Errors: InvalidArgument (factors that are not finite and above 0).
  Status begin(const TensorFactors& factors);
  /// Errors: InvalidArgument (another number of elements, a type that is not taken, null, memory
  /// of another tensor of the step).
  Status set(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);

  /// What tasks work on, by tensor; the same memory in every step.
  std::span<const ConstTensorView> gradients() const { return gradients_; }
  std::span<const TensorView> updates() const { return updates_; }
  /// The user's own, which have what he gets when the step has ended.
  std::span<const TensorView> given_updates() const { return wanted_; }

  /// Before the first task that takes the tensor, and behind the last one that writes its update;
  /// those of different tensors may run at once. Errors: OutOfMemory, Device, InvalidArgument (not
  /// the device's memory).
  Status prepare(std::uint32_t tensor);
  Status deliver(std::uint32_t tensor);
  /// Has a gradient of this step what was looked for? Waits for the device. Errors: Device.
  Result<bool> take_non_finite();
  /// Waits for what was delivered. Errors: Device.
  Status end();

 private:
  bool is_scaled() const { return factors_.scale != 1 || factors_.is_sum; }
  Status check_memory(std::uint32_t tensor) const;
  /// f32 of the gradient, later of the update. Errors: OutOfMemory, Device.
  Result<std::uint8_t*> values(std::uint32_t tensor);
  /// The given gradient there, divided by the scale.
  Result<ConstTensorView> scale(std::uint32_t tensor);

  const Plan& plan_;
  const std::uint32_t rank_;
  ComputeDevice& device_;
  StepMemory memory_;
  std::mutex mutex_;  // of both lanes
  TensorFactors factors_;
  std::vector<ConstTensorView> given_, gradients_;
  std::vector<TensorView> wanted_, updates_;
  MemoryPieces values_;  // by tensor; none before they are asked for
};

}  // namespace cinch::rt
