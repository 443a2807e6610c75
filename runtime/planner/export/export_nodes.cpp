#include "runtime/planner/export/export_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace cinch::rt {
namespace {

// Doubles below this hold whole numbers without loss.
constexpr double kMostWhole = 9007199254740992;

// Simulators take no messages without bytes. LogGOPS counts bytes from the second one on, so that
// one byte takes as long as none.
constexpr std::uint64_t kLeastBytes = 1;

// A pair of ranks exchanges messages, and takes part in collectives, in an order that both know.
// Messages and collectives are numbered apart, since ranks may mix the two differently.
std::uint32_t message_tag(std::uint32_t number) {
  return 3 * number;
}
std::uint32_t collective_tag(std::uint32_t number, std::uint32_t phase) {
  return 3 * number + 1 + phase;
}

class NodeMaker {
 public:
  NodeMaker(const Plan& plan, std::uint32_t rank, const CostInputs& inputs,
            const ExportFormat& format)
      : plan_(plan),
        rank_(rank),
        inputs_(inputs),
        format_(format),
        num_sent_(plan.world()),
        num_received_(plan.world()) {}

  Result<std::vector<ExportNode>> run() {
    const auto tasks = TRY(simulated_tasks(plan_, rank_, inputs_));
    CINCH_TRY(add_backward(tasks));
    for (task_ = 0; task_ < tasks.size(); ++task_) {
      const SimulatedTask& task = tasks[task_];
      Indices after;
      for (const std::uint32_t earlier : task.after) after.push_back(ends_[earlier]);
      if (task.ready_seconds > 0) after.push_back(backward_of(task.ready_seconds));
      if (task.kind == TaskKind::Exchange) {
        ends_.push_back(add_exchange(task, std::move(after)));
      } else {
        ends_.push_back(add({.lane = inputs_.is_on_device ? task.lane : Lane::Compute,
                             .duration = TRY(whole_units(task.seconds)),
                             .after = std::move(after)}));
      }
    }
    return std::move(nodes_);
  }

 private:
  using Indices = std::vector<std::uint32_t>;
  // Bytes by rank that a phase of a collective sends and receives.
  struct Phase {
    std::vector<std::uint64_t> sent, received;
  };

  std::uint32_t add(ExportNode node) {
    node.task = task_;
    nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  Result<std::uint64_t> whole_units(double seconds) const {
    const double units = std::round(seconds * format_.units_per_second);
    const bool fits = units >= 0 && units < kMostWhole;  // not: NaN
    if (!fits) {
      return invalid(
          fmt::format("rank {} has a task of {} s, which no file can hold", rank_, seconds));
    }
    return static_cast<std::uint64_t>(units);
  }

  // The backward pass, from each gradient to the next one. Times are rounded from the step's begin,
  // so that errors do not add up.
  Status add_backward(const std::vector<SimulatedTask>& tasks) {
    for (const SimulatedTask& task : tasks) {
      if (task.ready_seconds > 0) ready_.push_back(task.ready_seconds);
    }
    std::ranges::sort(ready_);
    ready_.erase(std::ranges::unique(ready_).begin(), ready_.end());
    std::uint64_t before = 0;
    for (const double seconds : ready_) {
      const std::uint64_t now = TRY(whole_units(seconds));
      Indices after;
      if (!nodes_.empty()) after.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
      add({.lane = inputs_.is_on_device ? Lane::Compute : Lane::Cpus,
           .is_backward = true,
           .duration = now - before,
           .after = std::move(after)});
      before = now;
    }
    return Ok{};
  }
  std::uint32_t backward_of(double seconds) const {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(ready_, seconds) - ready_.begin());
  }

  const Task& exchange() const { return plan_.ranks[rank_].tasks[task_]; }
  std::uint64_t bytes_in(std::uint32_t slot) const {
    return static_cast<std::uint64_t>(
        std::llround(slot_bytes(plan_, rank_, exchange(), slot, inputs_)));
  }
  std::uint64_t bytes_in(const std::vector<std::uint32_t>& slots) const {
    std::uint64_t bytes = 0;
    for (const std::uint32_t slot : slots) bytes += bytes_in(slot);
    return bytes;
  }

  // Returns the node with which the exchange has ended.
  std::uint32_t add_exchange(const SimulatedTask& task, Indices after) {
    if (is_message(task.exchange)) {
      const bool sends = task.exchange == ExchangeKind::Send;
      const std::uint64_t bytes = bytes_in(sends ? exchange().reads[0] : exchange().writes[0]);
      Indices& numbers = sends ? num_sent_ : num_received_;
      return add({.kind = sends ? ExportNode::Kind::Send : ExportNode::Kind::Receive,
                  .lane = Lane::Network,
                  .bytes = std::max(kLeastBytes, bytes),
                  .peer = task.peer,
                  .tag = message_tag(numbers[task.peer]++),
                  .after = std::move(after)});
    }
    const std::uint32_t number = num_collectives_++;
    if (!format_.has_collectives) return add_messages(number, std::move(after));
    // Simulators match collectives by the order in which ranks begin them.
    if (number > 0 && std::ranges::find(after, last_collective_) == after.end()) {
      after.push_back(last_collective_);
    }
    last_collective_ = add({.kind = ExportNode::Kind::Collective,
                            .lane = Lane::Network,
                            .bytes = std::max(kLeastBytes, collective_bytes()),
                            .after = std::move(after)});
    return last_collective_;
  }

  // As simulators count them: what goes into a reduction or an all-to-all on each rank, the own
  // part too; what each rank adds to an all-gather, on average, since simulators know no other.
  std::uint64_t collective_bytes() const {
    const std::uint64_t world = plan_.world();
    switch (exchange().exchange) {
      case ExchangeKind::AllGather:
        return (bytes_in(exchange().writes) + world - 1) / world;
      case ExchangeKind::Broadcast:
        return bytes_in(exchange().writes);
      default:
        return bytes_in(exchange().reads);
    }
  }

  // Messages between all pairs, in a circle. All of them may begin at once.
  std::uint32_t add_messages(std::uint32_t number, Indices after) {
    std::uint32_t last = add({.lane = Lane::Network, .after = std::move(after)});
    std::uint32_t tag = collective_tag(number, 0);
    for (const Phase& phase : phases()) {
      Indices messages;
      for (std::uint32_t i = 1; i < plan_.world(); ++i) {
        const std::uint32_t to = (rank_ + i) % plan_.world();
        const std::uint32_t from = (rank_ + plan_.world() - i) % plan_.world();
        const auto add_message = [&](ExportNode::Kind kind, std::uint32_t peer,
                                     std::uint64_t bytes) {
          if (bytes == 0) return;
          messages.push_back(add({.kind = kind,
                                  .lane = Lane::Network,
                                  .bytes = bytes,
                                  .peer = peer,
                                  .tag = tag,
                                  .after = {last}}));
        };
        add_message(ExportNode::Kind::Send, to, phase.sent[to]);
        add_message(ExportNode::Kind::Receive, from, phase.received[from]);
      }
      if (!messages.empty()) last = add({.lane = Lane::Network, .after = std::move(messages)});
      ++tag;
    }
    return last;
  }

  Phase phase_of(const std::function<std::uint64_t(std::uint32_t)>& sent,
                 const std::function<std::uint64_t(std::uint32_t)>& received) const {
    Phase phase;
    for (std::uint32_t other = 0; other < plan_.world(); ++other) {
      phase.sent.push_back(sent(other));
      phase.received.push_back(received(other));
    }
    return phase;
  }
  std::vector<Phase> phases() const {
    const auto& reads = exchange().reads;
    const auto& writes = exchange().writes;
    const auto none = [](std::uint32_t) { return std::uint64_t{0}; };
    const auto first_read = [&](std::uint32_t) { return bytes_in(reads[0]); };
    const auto read = [&](std::uint32_t to) { return bytes_in(reads[to]); };
    const auto write = [&](std::uint32_t from) { return bytes_in(writes[from]); };
    switch (exchange().exchange) {
      case ExchangeKind::AllGather:
        return {phase_of(first_read, write)};
      case ExchangeKind::AllToAll:
        return {phase_of(read, write)};
      case ExchangeKind::ReduceScatter:
        return {phase_of(read, [&](std::uint32_t) { return bytes_in(writes[0]); })};
      case ExchangeKind::Broadcast: {
        const std::uint32_t root = exchange().peer;
        if (rank_ == root) return {phase_of(first_read, none)};
        return {phase_of(
            none, [&](std::uint32_t from) { return from == root ? bytes_in(writes[0]) : 0; })};
      }
      case ExchangeKind::AllReduce: {
        // Each rank adds up one part of the array, and then sends it to all.
        const auto part = [&, all = bytes_in(reads[0])](std::uint64_t of) {
          return all * (of + 1) / plan_.world() - all * of / plan_.world();
        };
        const auto own = [&](std::uint32_t) { return part(rank_); };
        return {phase_of(part, own), phase_of(own, part)};
      }
      default:
        return {};  // messages
    }
  }

  const Plan& plan_;
  const std::uint32_t rank_;
  const CostInputs& inputs_;
  const ExportFormat format_;
  std::vector<ExportNode> nodes_;
  std::uint32_t task_ = 0;
  Indices ends_;               // by task
  std::vector<double> ready_;  // those of the tasks, sorted; the first nodes end then
  Indices num_sent_, num_received_;
  std::uint32_t num_collectives_ = 0, last_collective_ = 0;
};

}  // namespace

Result<std::vector<ExportNode>> export_nodes(const Plan& plan, std::uint32_t rank,
                                             const CostInputs& inputs, const ExportFormat& format) {
  if (plan.ranks[rank].tasks.empty() && !plan.ranks[0].tasks.empty()) {
    return invalid(fmt::format("the plan does not have the tasks of rank {}", rank));
  }
  if (static_cast<double>(plan.ranks[rank].wire_bytes) >= kMostWhole) {
    return invalid(fmt::format("messages of {} bytes", plan.ranks[rank].wire_bytes));
  }
  return NodeMaker(plan, rank, inputs, format).run();
}

NodeCounts most_nodes(const Plan& plan, std::uint32_t rank, const ExportFormat& format) {
  // The backward pass has a node for each tensor at most, and most tasks do not wait for it.
  NodeCounts most{plan.tensors.size(), plan.tensors.size()};
  for (const Task& task : plan.ranks[rank].tasks) {
    most.nodes += 1;
    most.waits += task.after.size() + 1;
    if (format.has_collectives || task.kind != TaskKind::Exchange || is_message(task.exchange)) {
      continue;
    }
    const std::uint64_t num_phases = task.exchange == ExchangeKind::AllReduce ? 2 : 1;
    const std::uint64_t num_messages = num_phases * 2 * (plan.world() - 1);
    most.nodes += num_messages + num_phases;
    most.waits += 2 * num_messages;
  }
  return most;
}

Status check_room(const char* file, std::uint64_t bytes, std::uint64_t most) {
  if (bytes <= most) return Ok{};
  return fail(ErrorKind::OutOfRange,
              fmt::format("the {} may take {} bytes, and {} are allowed", file, bytes, most));
}

}  // namespace cinch::rt
