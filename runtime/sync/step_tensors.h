// The user's tensors of one step: what tasks read and write in their place where they are scaled,
// and whether gradients are finite, where the user wants to know.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/exec/aligned_buffer.h"
#include "runtime/exec/task_runner.h"
#include "runtime/plan/plan.h"

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
  /// `plan` outlives this. Tensors are the host's memory, or a device's, which nobody looks at
  /// here.
  StepTensors(const Plan& plan, std::uint32_t rank, std::uint32_t threads, bool are_on_device);

  /// Errors: InvalidArgument (factors that are not finite and above 0; tensors of a device).
  Status begin(const TensorFactors& factors);
  /// Errors: InvalidArgument (another number of elements, a type that is not taken, null).
  Status set(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);

  /// What tasks work on, by tensor; the same memory in every step.
  std::span<const ConstTensorView> gradients() const { return gradients_; }
  std::span<const TensorView> updates() const { return updates_; }
  /// The user's own, which have what he gets when the step has ended.
  std::span<const TensorView> given_updates() const { return wanted_; }

  /// Before the first task that takes the tensor, and behind the last one that writes its update;
  /// those of different tensors may run at once. Errors: OutOfMemory.
  Status prepare(std::uint32_t tensor);
  Status deliver(std::uint32_t tensor);
  bool has_non_finite() const { return has_non_finite_; }

 private:
  bool is_scaled() const { return factors_.scale != 1 || factors_.is_sum; }

  const Plan& plan_;
  const std::uint32_t rank_;
  const std::uint32_t threads_;
  const bool are_on_device_;
  std::unique_ptr<TaskRunner> runner_;  // from the first step on that needs it
  std::mutex mutex_;                    // of both lanes
  TensorFactors factors_;
  std::vector<ConstTensorView> given_, gradients_;
  std::vector<TensorView> wanted_, updates_;
  std::vector<AlignedBuffer> scaled_;  // by tensor: f32 of its gradient, later of its update
  std::atomic<bool> has_non_finite_{false};
};

}  // namespace cinch::rt
