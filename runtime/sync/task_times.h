// When the tasks of a step ran: phases, and a timeline that opens in Perfetto.
#pragma once
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Seconds since the clock's epoch, which the ranks of one machine share.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// In seconds_now.
struct TaskTime {
  double begin = 0, end = 0;
  std::uint64_t sent_bytes = 0;  // to other ranks
};

struct TaskTimes {
  double begin = 0, end = 0;    // of the step
  std::vector<TaskTime> tasks;  // by the rank's plan
  std::vector<double> ready;    // by tensor: when it became ready
  bool is_in_parts = false;     // did tensors become ready one after the other, while the step ran?
};

struct Phase {
  std::string name;    // "encode", "all_gather"
  double seconds = 0;  // summed; phases of different lanes overlap
  std::uint64_t sent_bytes = 0;
  std::uint64_t num_tasks = 0;
};

/// Phases in the order of their first task.
std::vector<Phase> phases_of(const RankPlan& plan, const TaskTimes& times);
/// [{"phase", "ms", "sent_bytes", "tasks"}]
nlohmann::json phases_json(const RankPlan& plan, const TaskTimes& times);

/// The "traceEvents" of all ranks, as JSON of the Chrome trace format: a process for each rank, a
/// thread for each lane. `by_rank` has an entry per rank; one without tasks is left out.
std::string trace_json(const Plan& plan, const std::vector<TaskTimes>& by_rank);

// Reports one rank's last step as JSON, for tools that watch a training run.

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
