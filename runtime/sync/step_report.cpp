// Bodies of step_report.h.
#include "runtime/sync/step_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace cinch::rt {
namespace {

using nlohmann::json;

// The weight of a piece in a message: plans do not know payload sizes of programs with a `sync`.
double weight_of(const Piece& piece) {
  return static_cast<double>(
      piece.bound_bytes > 0 ? piece.bound_bytes : 4 * static_cast<std::uint64_t>(piece.num_elems));
}

json phases_of_rank(const RankPlan& plan, const TaskTimes& times) {
  json list = json::array();
  for (const Phase& phase : phases_of(plan, times)) {
    list.push_back({{"phase", phase.name},
                    {"ms", phase.seconds * 1e3},
                    {"sent_bytes", phase.sent_bytes},
                    {"tasks", phase.num_tasks}});
  }
  return list;
}

}  // namespace

std::vector<double> sent_bytes_by_tensor(const Plan& plan, std::uint32_t rank,
                                         const TaskTimes& times) {
  std::vector<double> bytes(plan.tensors.size());
  const auto& tasks = plan.ranks[rank].tasks;
  for (std::size_t t = 0; t < std::min(tasks.size(), times.tasks.size()); ++t) {
    if (times.tasks[t].sent_bytes == 0) continue;
    double whole = 0;
    for (const std::uint32_t group : tasks[t].groups) {
      for (const std::uint32_t piece : plan.groups[group].pieces) {
        whole += weight_of(plan.pieces[piece]);
      }
    }
    if (whole == 0) continue;
    const double share = static_cast<double>(times.tasks[t].sent_bytes) / whole;
    for (const std::uint32_t group : tasks[t].groups) {
      for (const std::uint32_t piece : plan.groups[group].pieces) {
        bytes[plan.pieces[piece].tensor] += share * weight_of(plan.pieces[piece]);
      }
    }
  }
  return bytes;
}

std::string step_report_json(const Plan& plan, std::uint32_t rank, const TaskTimes& times,
                             const SyncMemory& memory, std::span<const double> errors) {
  const std::vector<double> sent = sent_bytes_by_tensor(plan, rank, times);
  json tensors = json::array();
  std::uint64_t all = 0;
  for (const TaskTime& task : times.tasks) all += task.sent_bytes;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const double ready = t < times.ready.size() ? times.ready[t] : 0;
    tensors.push_back({{"name", plan.tensors[t].name},
                       {"elements", plan.tensors[t].num_elems()},
                       {"compressed", plan.tensors[t].codec != kDense},
                       {"sent_bytes", std::llround(sent[t])},
                       {"ready_ms", std::max(0.0, ready - times.begin) * 1e3}});
    if (t < errors.size()) tensors.back()["error"] = errors[t];
  }
  const json report = {{"step_ms", (times.end - times.begin) * 1e3},
                       {"sent_bytes", all},
                       {"phases", phases_of_rank(plan.ranks[rank], times)},
                       {"tensors", tensors},
                       {"memory_bytes",
                        {{"states", memory.states},
                         {"workspace", memory.workspace},
                         {"messages", memory.messages},
                         {"sums", memory.sums},
                         {"gradients", memory.gradients}}}};
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace cinch::rt
