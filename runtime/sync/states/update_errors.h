// Measures how far the updates of a step are from the mean (or the sum) of the ranks' gradients. It
// takes one more all-reduce of f32, so it runs only if the user asks for it.
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

  /// Forgets the last step's errors.
  void begin();
  /// Copies the gradient, since its update may overwrite it. Errors: OutOfMemory.
  Status keep(std::uint32_t tensor, const ConstTensorView& gradient);
  /// Measures, when all updates are written. All ranks call it, with all tensors kept. Errors:
  /// those of the transport.
  Status measure(std::span<const TensorView> updates, bool is_sum, Transport& transport,
                 std::chrono::milliseconds timeout);

  /// By tensor: |update - mean| / |mean|, as Euclidean norms over the elements of this rank's
  /// update. NaN if the mean is zeros and the update is not, or if either is not finite. Empty if
  /// the last step was not measured.
  std::span<const double> values() const { return values_; }
  std::size_t memory_bytes() const;

 private:
  Status add_up(std::span<float> values, Transport& transport, std::chrono::milliseconds timeout);
  Result<double> error_of(std::uint32_t tensor, const TensorView& update, double divisor);

  const Plan& plan_;
  const std::uint32_t rank_, threads_;
  std::unique_ptr<TaskRunner> runner_;  // made in the first step that is measured
  std::vector<AlignedBuffer> kept_;     // by tensor: f32 of its gradient, later the sum over ranks
  AlignedBuffer update_;                // f32 of one update
  std::vector<double> values_;
};

}  // namespace cinch::rt
