// When the tasks of a step ran: phases, and a timeline that opens in Perfetto.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Seconds since the clock's epoch, which the ranks of one machine share.
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

/// The "traceEvents" of all ranks, as JSON of the Chrome trace format: a process for each rank, a
/// thread for each lane. `by_rank` has an entry per rank; one without tasks is left out.
std::string trace_json(const Plan& plan, const std::vector<TaskTimes>& by_rank);

}  // namespace cinch::rt
