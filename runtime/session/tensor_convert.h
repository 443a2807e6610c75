// Converts tensors of f16 and bf16 to and from the f32 that kernels work on, on a runner's threads.
// Rounding is the language's.
#pragma once
#include <atomic>
#include <span>

#include "runtime/call/list_call.h"
#include "runtime/core/error.h"
#include "runtime/exec/task_runner.h"

namespace cinch::rt {

/// `from` holds as many elements as `to`. Errors: Cancelled.
Status convert_to_f32(ConstTensorView from, std::span<float> to, TaskRunner& runner,
                      const std::atomic<bool>* cancelled);
Status convert_from_f32(std::span<const float> from, TensorView to, TaskRunner& runner,
                        const std::atomic<bool>* cancelled);

/// Writes the canonical NaN of the type to every element.
Status fill_nan(TensorView to, TaskRunner& runner, const std::atomic<bool>* cancelled);

/// sums[i] += addends[i].
Status add_f32(std::span<float> sums, std::span<const float> addends, TaskRunner& runner,
               const std::atomic<bool>* cancelled);
/// to[i] = from[i] / divisor; `to` may be `from`.
Status divide_f32(std::span<const float> from, float divisor, std::span<float> to,
                  TaskRunner& runner, const std::atomic<bool>* cancelled);

/// to[i] = from[i] * factor; `to` may be `from`.
Status multiply_f32(std::span<const float> from, float factor, std::span<float> to,
                    TaskRunner& runner, const std::atomic<bool>* cancelled);

/// Is every value finite? Errors: Cancelled.
Result<bool> all_finite(std::span<const float> values, TaskRunner& runner,
                        const std::atomic<bool>* cancelled);
Result<bool> all_finite(ConstTensorView values, TaskRunner& runner,
                        const std::atomic<bool>* cancelled);

}  // namespace cinch::rt
