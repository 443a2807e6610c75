// From the tasks of a plan to those of a simulation.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/simulation/task_costs.h"

namespace cinch::rt {
namespace {

using Indices = std::vector<std::uint32_t>;

bool is_message(const Task& task) {
  return task.kind == TaskKind::Exchange &&
         (task.exchange == ExchangeKind::Send || task.exchange == ExchangeKind::Receive);
}

bool takes_gradient(const Task& task) {
  if (task.on_cpus) return task.kind == TaskKind::Fetch;
  const bool encodes = task.kind == TaskKind::Encode && task.from == Value::Gradient;
  return encodes || task.kind == TaskKind::Add || task.kind == TaskKind::Part;
}

class RankSimulator {
 public:
  RankSimulator(const Plan& plan, std::uint32_t rank, const CostInputs& inputs)
      : plan_(plan), own_(plan.ranks[rank]), rank_(rank), inputs_(inputs), costs_(plan, inputs) {}

  Result<std::vector<SimulatedTask>> run() {
    if (inputs_.stand_ins) find_sources();
    tasks_.reserve(own_.tasks.size());
    for (const Task& task : own_.tasks) CINCH_TRY(add(task));
    const bool is_circle = inputs_.stand_ins && inputs_.stand_ins->is_circle;
    if (inputs_.joins_rounds && !is_circle) join_rounds();
    return std::move(tasks_);
  }

 private:
  // A message's receivers, or senders, as far as this rank sees them.
  struct Peers {
    std::uint32_t rank = 0;  // among those that are simulated
    FlowScope scope = FlowScope::All;
    double count = 1, copies = 1;
    bool is_left_out = false;
  };

  bool has_units() const { return inputs_.stand_ins && !inputs_.stand_ins->is_circle; }
  const StandIns& stand_ins() const { return *inputs_.stand_ins; }
  std::uint32_t unit_of(std::uint32_t written) const {
    return written / stand_ins().ranks_per_unit;
  }
  double weight_of_unit(std::uint32_t written) const { return stand_ins().unit_of(written).weight; }

  Status add(const Task& task) {
    if (task.kind == TaskKind::Synchronise) {
      return invalid("a `sync` whose collectives only show on the way cannot be predicted");
    }
    const double slowness = inputs_.slowness.empty() ? 1 : inputs_.slowness[rank_];
    SimulatedTask& to = tasks_.emplace_back();
    to.ready_seconds = ready_seconds_of(task) * slowness;
    to.kind = task.kind;
    to.lane = task.lane();
    to.after = task.after;
    if (task.kind == TaskKind::Exchange) return add_exchange(task, to);
    to.units = has_units() ? units_of(task) : 1;
    to.seconds = costs_.seconds(task) * to.units * slowness;
    return Ok{};
  }

  // When the last gradient that the task takes is ready.
  double ready_seconds_of(const Task& task) const {
    double last = 0;
    if (inputs_.ready_seconds.empty() || !takes_gradient(task)) return last;
    for (const std::uint32_t group : task.groups) {
      for (const std::uint32_t piece : plan_.groups[group].pieces) {
        last = std::max(last, inputs_.ready_seconds[plan_.pieces[piece].tensor]);
      }
    }
    return last;
  }

  Status add_exchange(const Task& task, SimulatedTask& to) {
    to.exchange = task.exchange;
    to.peer = task.peer;
    const Line& work = inputs_.exchange_work[NetworkModel::index_of(task.exchange)];
    if (!is_message(task)) {
      to.line = inputs_.network.of(task.exchange).line;
      CINCH_TRY(add_flows(task, to));
      to.seconds = work.at(to.sent_bytes());
      if (task.exchange == ExchangeKind::AllReduce && inputs_.make_links) take_two_rounds(to);
      return Ok{};
    }
    to.is_within = inputs_.network.is_within(rank_, task.peer);
    to.line = to.is_within ? inputs_.network.within.line : inputs_.network.of(task.exchange).line;
    const Peers peers = peers_of(task);
    to.peer = peers.rank;
    to.scope = peers.scope;
    to.is_left_out = peers.is_left_out;
    if (to.is_left_out) return Ok{};
    if (task.exchange == ExchangeKind::Send) {
      const double bytes = costs_.bytes(own_, task, task.reads[0]);
      to.flows = {{peers.rank, peers.scope, bytes, peers.copies, peers.count}};
    }
    const double messages = peers.copies * peers.count;
    to.seconds = (messages - 1) * work.base + work.at(to.sent_bytes());
    return Ok{};
  }

  // To owners of parts, and back from them.
  static void take_two_rounds(SimulatedTask& to) {
    to.rounds = 2;
    for (SimulatedFlow& flow : to.flows) flow.bytes /= to.rounds;
  }

  Peers peers_of(const Task& task) const {
    if (!inputs_.stand_ins) return {task.peer};
    if (stand_ins().is_circle) return {task.peer % stand_ins().num_classes, FlowScope::Next};
    const std::uint32_t group = task.groups[0];
    const StandIns::Unit& unit = stand_ins().unit_of(task.peer);
    Peers peers{simulated(task.peer), FlowScope::OwnMachine, 1, costs_.weight_of(group)};
    if (unit_of(task.peer) == unit_of(rank_)) return peers;
    // The unit for the rest speaks for its whole class.
    const auto owner = costs_.owner_of(group);
    const bool is_own_class = unit.unit_class == stand_ins().unit_of(rank_).unit_class;
    if (owner && unit_of(*owner) == unit_of(task.peer)) peers.copies = 1;
    peers.scope = FlowScope::OtherMachines;
    peers.count = unit.class_size - (is_own_class ? 1 : 0);
    peers.is_left_out = unit.has_rest && !unit.is_rest;
    return peers;
  }

  // The number of a written rank among those that are simulated.
  std::uint32_t simulated(std::uint32_t written) const {
    if (!has_units()) return written;
    const std::uint32_t each = stand_ins().ranks_per_unit;
    return stand_ins().unit_of(written).unit_class * each + written % each;
  }

  // By the written rank that others stand in for: the bytes that it gets from this one.
  std::vector<double> sent_bytes(const Task& task) const {
    std::vector<double> sent(plan_.world());
    const auto to_all = [&](double bytes) { std::ranges::fill(sent, bytes); };
    const auto read = [&](std::size_t i) { return costs_.bytes(own_, task, task.reads[i]); };
    const double world = inputs_.stand_ins ? stand_ins().world : plan_.world();
    switch (task.exchange) {
      case ExchangeKind::AllGather:
        to_all(read(0));
        break;
      case ExchangeKind::Broadcast:
        if (task.peer == rank_) to_all(read(0));
        break;
      case ExchangeKind::AllReduce:
        to_all(2 * read(0) / world);
        break;
      case ExchangeKind::AllToAll:
      case ExchangeKind::ReduceScatter:
        for (std::uint32_t to = 0; to < plan_.world(); ++to) sent[to] = read(to);
        break;
      default:
        break;
    }
    return sent;
  }

  Status add_flows(const Task& task, SimulatedTask& to) const {
    const std::vector<double> sent = sent_bytes(task);
    if (!inputs_.stand_ins) {
      for (std::uint32_t i = 1; i < plan_.world(); ++i) {
        const std::uint32_t other = (rank_ + i) % plan_.world();
        to.flows.push_back({other, FlowScope::All, sent[other]});
      }
      return Ok{};
    }
    const bool is_known = !stand_ins().is_circle && task.exchange != ExchangeKind::Broadcast &&
                          task.exchange != ExchangeKind::ReduceScatter;
    if (!is_known) return invalid("collectives that no rank stands in for in a simulation");
    for (std::uint32_t written = 0; written < plan_.world(); ++written) {
      const StandIns::Unit& unit = stand_ins().unit_of(written);
      if (unit.has_rest && !unit.is_rest) continue;
      const std::uint32_t other = simulated(written);
      const bool is_own = other == simulated(rank_);
      const double count = unit.class_size - (is_own ? 1 : 0);
      if (count > 0) to.flows.push_back({other, FlowScope::All, sent[written], 1, count});
    }
    return Ok{};
  }

  // By slot: the written rank whose payload it holds.
  void find_sources() {
    source_.assign(own_.slots.size(), rank_);
    for (const Task& task : own_.tasks) {
      if (task.kind != TaskKind::Exchange) continue;
      if (task.exchange == ExchangeKind::Receive) source_[task.writes[0]] = task.peer;
      const bool is_by_rank = task.writes.size() == plan_.world();
      for (std::uint32_t i = 0; is_by_rank && i < plan_.world(); ++i) source_[task.writes[i]] = i;
    }
  }

  // How many tasks it is, where ranks are written that stand for others.
  double units_of(const Task& task) const {
    if (task.groups.size() != 1) return 1;  // a list, which is longer
    const double groups = costs_.weight_of(task.groups[0]);
    if (task.kind != TaskKind::DecodeAdd) return groups;
    const std::uint32_t source = source_[task.reads[0]];
    const auto owner = costs_.owner_of(task.groups[0]);
    if (unit_of(source) == unit_of(rank_)) return groups;
    if (owner && unit_of(*owner) == unit_of(source)) return groups;
    return groups * weight_of_unit(source);
  }

  // What a message of a round waits for, all of them wait for. What needs one of them needs all;
  // so does the first payload of a sum that one of them adds to, since ranks differ in its place.
  void join_rounds() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, Indices> rounds;
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      const Task& task = own_.tasks[t];
      if (!is_message(task)) continue;
      const bool sends = task.exchange == ExchangeKind::Send;
      rounds[{plan_.groups[task.groups[0]].bundle, task.round, sends}].push_back(t);
    }
    std::vector<const Indices*> received(tasks_.size());
    for (const auto& [key, messages] : rounds) {
      SimulatedTask& first = tasks_[messages[0]];
      for (const std::uint32_t t : messages) {
        if (!std::get<2>(key)) received[t] = &messages;
        if (t == messages[0]) continue;
        first.seconds += std::exchange(tasks_[t].seconds, 0);
        add_all(tasks_[t].after, first.after);
      }
    }
    // By group: the first task that adds to its sum.
    std::map<std::uint32_t, std::uint32_t> first_of_sum;
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      const Task& task = own_.tasks[t];
      if (is_message(task)) continue;
      std::uint32_t waits = t;
      const std::uint32_t values = group_of_values(plan_, task.groups[0]);
      if (task.kind == TaskKind::Clear) first_of_sum.erase(values);
      if (task.kind == TaskKind::DecodeAdd)
        waits = first_of_sum.try_emplace(values, t).first->second;
      const Indices needed = tasks_[t].after;
      for (const std::uint32_t earlier : needed) {
        if (received[earlier] != nullptr) add_all(*received[earlier], tasks_[waits].after);
      }
    }
  }

  static void add_all(const Indices& more, Indices& to) {
    to.insert(to.end(), more.begin(), more.end());
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
  }

  const Plan& plan_;
  const RankPlan& own_;
  const std::uint32_t rank_;
  const CostInputs& inputs_;
  const TaskCosts costs_;
  std::vector<SimulatedTask> tasks_;
  Indices source_;
};

}  // namespace

Result<std::vector<SimulatedTask>> simulated_tasks(const Plan& plan, std::uint32_t rank,
                                                   const CostInputs& inputs) {
  CINCH_TRY(check_cost_inputs(plan, inputs));
  return RankSimulator(plan, rank, inputs).run();
}

double slot_bytes(const Plan& plan, std::uint32_t rank, const Task& exchange, std::uint32_t slot,
                  const CostInputs& inputs) {
  return TaskCosts(plan, inputs).bytes(plan.ranks[rank], exchange, slot);
}

}  // namespace cinch::rt
