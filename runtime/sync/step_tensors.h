// The user's tensors of one step. It makes the scaled copies that tasks read and write in their
// place, and looks for non-finite gradients if the user asks for it.
#pragma once
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/device/compute_device.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/step_memory.h"
#include "runtime/sync/update_digests.h"

namespace cinch::rt {

struct TensorFactors {
  /// Gradients are divided by this before they are synchronised, and updates multiplied by it.
  double scale = 1;
  /// Are updates sums over ranks, not means?
  bool is_sum = false;
  bool looks_for_non_finite = false;
};

class StepTensors {
 public:
  /// Tensors lie in memory of `device`. `device` and `plan` outlive this. Nobody else uses a
  /// `device` that is a host. `is_local`: of UpdateDigests.
  StepTensors(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
              const std::vector<bool>& is_local);
  ~StepTensors();
  StepTensors(const StepTensors&) = delete;
  StepTensors& operator=(const StepTensors&) = delete;

  /// Begins a step. Errors: InvalidArgument (factors that are not finite and above 0).
  Status begin(const TensorFactors& factors);
  /// Sets one tensor of the step. Errors: InvalidArgument (another number of elements, a type that
  /// is not supported, null, memory of another tensor of the step).
  Status set(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);

  /// The arrays that tasks work on, by tensor; the same memory in every step.
  std::span<const ConstTensorView> gradients() const { return gradients_; }
  std::span<const TensorView> updates() const { return updates_; }
  /// The user's own arrays, which hold the updates when the step has ended.
  std::span<const TensorView> given_updates() const { return wanted_; }

  /// prepare runs before the first task that reads the tensor, deliver after the last one that
  /// writes its update. Both may run for different tensors at once. Errors: OutOfMemory, Device,
  /// InvalidArgument (not the device's memory).
  Status prepare(std::uint32_t tensor);
  Status deliver(std::uint32_t tensor);
  /// Does a gradient of this step have a non-finite value? Waits for the device. Errors: Device.
  Result<bool> take_non_finite();
  /// Of what was delivered, if it lies in host memory.
  UpdateDigests& digests() { return digests_; }
  /// Waits until all delivered updates are written. Errors: Device.
  Status end();

 private:
  bool is_scaled() const { return factors_.scale != 1 || factors_.is_sum; }
  Status check_memory(std::uint32_t tensor) const;
  Status rescale(std::uint32_t tensor);
  /// f32 memory of the gradient, later of the update. Errors: OutOfMemory, Device.
  Result<std::uint8_t*> values(std::uint32_t tensor);
  /// Writes the gradient, divided by the scale, to that memory.
  Result<ConstTensorView> scale(std::uint32_t tensor);

  const Plan& plan_;
  const std::uint32_t rank_;
  ComputeDevice& device_;
  StepMemory memory_;
  UpdateDigests digests_;
  std::mutex mutex_;  // shared by both lanes
  TensorFactors factors_;
  std::vector<ConstTensorView> given_, gradients_;
  std::vector<TensorView> wanted_, updates_;
  MemoryPieces values_;  // by tensor; empty until first needed
};

}  // namespace cinch::rt
