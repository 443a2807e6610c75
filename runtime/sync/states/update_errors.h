// How far the updates of a step are from what they stand for, the mean (or the sum) of the ranks'
// gradients: measured where the user asks for it, as that takes an all-reduce of f32 more.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/collective/transport.h"
#include "runtime/exec/aligned_buffer.h"
#include "runtime/exec/task_runner.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

class UpdateErrors {
 public:
  /// `plan` outlives this.
  UpdateErrors(const Plan& plan, std::uint32_t rank, std::uint32_t threads);

  /// Forgets the last step's.
  void begin();
  /// Copies the gradient, which its update may overwrite. Errors: OutOfMemory.
  Status keep(std::uint32_t tensor, const ConstTensorView& gradient);
  /// When all updates are written; all ranks call it, with all tensors kept. Errors: those of the
  /// transport.
  Status measure(std::span<const TensorView> updates, bool is_sum, Transport& transport,
                 std::chrono::milliseconds timeout);

  /// By tensor |update - mean| / |mean|, Euclidean norms over the elements that this rank's update
  /// has; NaN where the mean is zeros and the update is not, or where either is not finite. Empty
  /// if the last step was not measured.
  std::span<const double> values() const { return values_; }
  std::size_t memory_bytes() const;

 private:
  Status add_up(std::span<float> values, Transport& transport, std::chrono::milliseconds timeout);
  Result<double> error_of(std::uint32_t tensor, const TensorView& update, double divisor);

  const Plan& plan_;
  const std::uint32_t rank_, threads_;
  std::unique_ptr<TaskRunner> runner_;  // from the first step on that is measured
  std::vector<AlignedBuffer> kept_;     // by tensor: f32 of its gradient, later the sum of all
  AlignedBuffer update_;                // f32 of one
  std::vector<double> values_;
};

}  // namespace cinch::rt
