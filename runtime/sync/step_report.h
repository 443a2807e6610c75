// What the last step of one rank took, as JSON: for whoever watches a training run.
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
  std::size_t gradients = 0;  // kept to measure errors
};

/// Bytes that the rank sent to others, by tensor: those of a message that several share in
/// proportion to what each may take there.
std::vector<double> sent_bytes_by_tensor(const Plan& plan, std::uint32_t rank,
                                         const TaskTimes& times);

/// {"step_ms", "sent_bytes", "phases": [{"phase", "ms", "sent_bytes", "tasks"}], "tensors":
/// [{"name", "elements", "compressed", "sent_bytes", "ready_ms", "error"}], "memory_bytes":
/// {"states", "workspace", "messages", "sums", "gradients"}}. `ready_ms` is from the step's begin.
/// `errors` is by tensor, of update_errors.h, NaN is null; where it is empty there is no "error".
std::string step_report_json(const Plan& plan, std::uint32_t rank, const TaskTimes& times,
                             const SyncMemory& memory, std::span<const double> errors);

}  // namespace cinch::rt
