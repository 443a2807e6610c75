// Bodies of plan_cost.h: the costs of tasks. plan_simulation.h runs them.
#include "runtime/planner/plan_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/planner/plan_simulation.h"

namespace cinch::rt {
namespace {

double line_through(const Sample& a, const Sample& b, double size) {
  const double slope = std::max(0.0, (b.seconds - a.seconds) / (b.size - a.size));
  return std::max(0.0, a.seconds + slope * (size - a.size));
}

class TaskCosts {
 public:
  TaskCosts(const Plan& plan, const CostInputs& inputs) : plan_(plan), inputs_(inputs) {}

  double seconds(const Task& task) const {
    switch (task.kind) {
      case TaskKind::Clear:
        return add_up(task, inputs_.clear);
      case TaskKind::Encode:
        return add_up(task, speed_of(task).encode);
      case TaskKind::Decode:
        return add_up(task, speed_of(task).decode);
      case TaskKind::DecodeAdd:
        return add_up(task, speed_of(task).decode_add);
      case TaskKind::Add:
      case TaskKind::Scale:
        return add_up(task, inputs_.dense.decode_add);
      case TaskKind::Finish:
        return add_up(task, speed_of(task).finish);
      case TaskKind::Spread:
        return add_up(task, speed_of(task).spread);
      case TaskKind::Join:
        return add_up(task, speed_of(task).join);
      case TaskKind::Part:
        return part_seconds(task);
      case TaskKind::Exchange:
      case TaskKind::Synchronise:
        break;
    }
    return 0;
  }

  // Bytes in a slot of an exchange.
  double bytes(const RankPlan& rank, const Task& task, std::uint32_t slot) const {
    const auto capacity = static_cast<double>(rank.slots[slot].capacity);
    return task.is_sized ? capacity * speed_of(task).used_share : capacity;
  }

 private:
  const CodecSpeed& speed_of(const Task& task) const {
    const std::uint32_t codec = plan_.groups[task.groups[0]].codec;
    return task.is_dense || codec == kDense ? inputs_.dense : inputs_.codecs[codec];
  }
  // Loops may run more often than for the measured tensor.
  double part_seconds(const Task& task) const {
    const auto& parts = speed_of(task).parts;
    if (parts.empty()) return 0;
    const std::size_t last = parts.size() - 1;
    if (task.is_last_part()) return add_up(task, parts[last]);
    return add_up(task, parts[std::min<std::size_t>(task.part, last == 0 ? 0 : last - 1)]);
  }
  double add_up(const Task& task, const CostCurve& curve) const {
    double seconds = 0;
    for (const std::uint32_t group : task.groups) {
      for (const std::uint32_t piece : plan_.groups[group].pieces) {
        seconds += curve.at(static_cast<double>(plan_.pieces[piece].num_elems));
      }
    }
    return seconds;
  }

  const Plan& plan_;
  const CostInputs& inputs_;
};

// By rank, the bytes that it sends to each other one.
std::vector<double> sent_bytes(const Plan& plan, std::uint32_t rank, const Task& task,
                               const TaskCosts& costs) {
  const RankPlan& own = plan.ranks[rank];
  std::vector<double> sent(plan.world());
  const auto to_all = [&](double bytes) { std::ranges::fill(sent, bytes); };
  const auto read = [&](std::size_t i) { return costs.bytes(own, task, task.reads[i]); };
  switch (task.exchange) {
    case ExchangeKind::Send:
      sent[task.peer] = read(0);
      break;
    case ExchangeKind::Receive:
      break;
    case ExchangeKind::AllGather:
      to_all(read(0));
      break;
    case ExchangeKind::Broadcast:
      if (task.peer == rank) to_all(read(0));
      break;
    case ExchangeKind::AllReduce:
      to_all(2 * read(0) / plan.world());
      break;
    case ExchangeKind::AllToAll:
    case ExchangeKind::ReduceScatter:
      for (std::uint32_t to = 0; to < plan.world(); ++to) sent[to] = read(to);
      break;
  }
  sent[rank] = 0;
  return sent;
}

}  // namespace

double CostCurve::at(double elems) const {
  if (samples.empty()) return 0;
  if (samples.size() == 1) {
    const Sample& only = samples[0];
    return only.size > 0 ? only.seconds * elems / only.size : only.seconds;
  }
  auto after = std::ranges::find_if(samples, [elems](const Sample& s) { return s.size >= elems; });
  after = std::clamp(after, samples.begin() + 1, samples.end() - 1);
  return line_through(*(after - 1), *after, elems);
}

Result<PlanCost> estimate_cost(const Plan& plan, const CostInputs& inputs) {
  if (plan.world() != inputs.network.world) {
    return fail(ErrorKind::InvalidArgument, fmt::format("a plan for {} ranks, the network has {}",
                                                        plan.world(), inputs.network.world));
  }
  const TaskCosts costs(plan, inputs);
  PlanSimulation simulation({inputs.ranks_per_machine, inputs.cores, inputs.threads});
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    std::vector<SimulatedTask> tasks;
    tasks.reserve(plan.ranks[rank].tasks.size());
    for (const Task& task : plan.ranks[rank].tasks) {
      if (task.kind == TaskKind::Synchronise) {
        return fail(ErrorKind::InvalidArgument,
                    "a `sync` whose collectives only show on the way cannot be predicted");
      }
      SimulatedTask& to = tasks.emplace_back();
      to.kind = task.kind;
      to.after = task.after;
      to.seconds = costs.seconds(task);
      if (task.kind != TaskKind::Exchange) continue;
      to.exchange = task.exchange;
      to.peer = task.peer;
      to.sent_bytes = sent_bytes(plan, rank, task, costs);
      to.line = inputs.network.of(task.exchange).line;
      const double sent = std::accumulate(to.sent_bytes.begin(), to.sent_bytes.end(), 0.0);
      to.seconds = inputs.exchange_work[NetworkModel::index_of(task.exchange)].at(sent);
    }
    simulation.add_rank(std::move(tasks));
  }
  return simulation.run();
}

}  // namespace cinch::rt
