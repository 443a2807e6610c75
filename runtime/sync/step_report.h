// Reports one rank's last step as JSON, for tools that watch a training run.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/sync/task_times.h"

namespace cinch::rt {

/// Bytes that one rank holds.
struct SyncMemory {
  std::size_t states = 0, workspace = 0, messages = 0, sums = 0;
  std::size_t gradients = 0;  // copies, for measuring errors
};

/// Bytes that the rank sent to others, by tensor. Tensors that share a message count its bytes in
/// proportion to their largest sizes.
std::vector<double> sent_bytes_by_tensor(const Plan& plan, std::uint32_t rank,
                                         const TaskTimes& times);

/// {"step_ms", "sent_bytes", "phases": [{"phase", "ms", "sent_bytes", "tasks"}], "tensors":
/// [{"name", "elements", "compressed", "sent_bytes", "ready_ms", "error"}], "memory_bytes":
/// {"states", "workspace", "messages", "sums", "gradients"}}. `ready_ms` counts from the step's
/// begin. `errors` holds the errors of update_errors.h by tensor; NaN becomes null. If it is empty
/// there is no "error".
std::string step_report_json(const Plan& plan, std::uint32_t rank, const TaskTimes& times,
                             const SyncMemory& memory, std::span<const double> errors);

}  // namespace cinch::rt
