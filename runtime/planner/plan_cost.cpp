#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {
namespace {

class TaskCosts {
 public:
  TaskCosts(const Plan& plan, const CostInputs& inputs) : plan_(plan), inputs_(inputs) {}

  double seconds(const Task& task) const {
    switch (task.kind) {
      case TaskKind::Clear:
        return add_up(task, cpus_of(task) != nullptr ? cpus_of(task)->clear : inputs_.clear);
      case TaskKind::Encode:
        return add_up(task, speed_of(task).encode);
      case TaskKind::Decode:
        return add_up(task, speed_of(task).decode);
      case TaskKind::DecodeAdd:
        return add_up(task, speed_of(task).decode_add);
      case TaskKind::Add:
      case TaskKind::Scale:
        return add_up(task, dense_of(task).decode_add);
      case TaskKind::Finish:
        return add_up(task, speed_of(task).finish);
      case TaskKind::Spread:
        return add_up(task, speed_of(task).spread);
      case TaskKind::Join:
        return add_up(task, speed_of(task).join);
      case TaskKind::Part:
        return part_seconds(task);
      case TaskKind::Fetch:
        return cpus_of(task) != nullptr ? add_up(task, cpus_of(task)->copy_out) : 0;
      case TaskKind::Deliver:
        return cpus_of(task) != nullptr ? add_up(task, cpus_of(task)->copy_in) : 0;
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
  // Null: the rank's device works on the task.
  const CpuSpeeds* cpus_of(const Task& task) const {
    return task.on_cpus && inputs_.on_cpus ? &*inputs_.on_cpus : nullptr;
  }
  const CodecSpeed& dense_of(const Task& task) const {
    return cpus_of(task) != nullptr ? cpus_of(task)->dense : inputs_.dense;
  }
  const CodecSpeed& speed_of(const Task& task) const {
    const std::uint32_t codec = plan_.groups[task.groups[0]].codec;
    if (task.is_dense || codec == kDense) return dense_of(task);
    return cpus_of(task) != nullptr ? cpus_of(task)->codecs[codec] : inputs_.codecs[codec];
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

// Times of links are whole nanoseconds, far below the precision of the model.
constexpr double kNanoseconds = 1e9;
constexpr double kNever = std::numeric_limits<double>::infinity();

LinkClock::duration duration_of(double seconds) {
  return LinkClock::duration(std::llround(seconds * kNanoseconds));
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
  const Sample& a = *(after - 1);
  const double slope = std::max(0.0, (after->seconds - a.seconds) / (after->size - a.size));
  return std::max(0.0, a.seconds + slope * (elems - a.size));
}

namespace {

bool takes_gradient(const Task& task) {
  if (task.on_cpus) return task.kind == TaskKind::Fetch;
  const bool encodes = task.kind == TaskKind::Encode && task.from == Value::Gradient;
  return encodes || task.kind == TaskKind::Add || task.kind == TaskKind::Part;
}

// When the last gradient that the task takes is ready.
double ready_seconds_of(const Plan& plan, const Task& task, const std::vector<double>& ready) {
  double last = 0;
  if (ready.empty() || !takes_gradient(task)) return last;
  for (const std::uint32_t group : task.groups) {
    for (const std::uint32_t piece : plan.groups[group].pieces) {
      last = std::max(last, ready[plan.pieces[piece].tensor]);
    }
  }
  return last;
}

double slowness_of(const CostInputs& inputs, std::uint32_t rank) {
  return inputs.slowness.empty() ? 1 : inputs.slowness[rank];
}

// The tasks of a rank in the order of their places.
void reorder(std::vector<SimulatedTask>& tasks, const std::vector<std::uint32_t>& places) {
  std::vector<SimulatedTask> ordered(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (std::uint32_t& earlier : tasks[t].after) earlier = places[earlier];
    ordered[places[t]] = std::move(tasks[t]);
  }
  tasks = std::move(ordered);
}

Status check_inputs(const Plan& plan, const CostInputs& inputs) {
  if (plan.world() != inputs.network.world) {
    return invalid(
        fmt::format("a plan for {} ranks, the network has {}", plan.world(), inputs.network.world));
  }
  const std::size_t num_ready = inputs.ready_seconds.size();
  if (num_ready != 0 && num_ready != plan.tensors.size()) {
    return invalid(fmt::format("{} ready times of {} tensors", num_ready, plan.tensors.size()));
  }
  return Ok{};
}

// `ahead`: as of order_of_tasks; 0: the plan's own order.
Result<PlanCost> simulate(const Plan& plan, const CostInputs& inputs, std::uint32_t ahead,
                          PlanSpans* spans) {
  SharedCores cores{inputs.ranks_per_machine, inputs.cores, inputs.threads, {}};
  if (inputs.is_on_device) {
    cores.threads_beside_device = inputs.on_cpus ? inputs.on_cpus->threads : 0;
  }
  PlanSimulation simulation(cores, inputs.make_links ? inputs.make_links() : nullptr);
  std::vector<std::uint32_t> places(plan.tensors.size());
  std::iota(places.begin(), places.end(), 0U);
  std::ranges::stable_sort(places, {}, [&](std::uint32_t tensor) {
    return inputs.ready_seconds.empty() ? 0 : inputs.ready_seconds[tensor];
  });
  std::vector<std::uint32_t> place_of_tensor(places.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) place_of_tensor[places[i]] = i;
  std::vector<std::vector<std::uint32_t>> places_of_tasks;  // by rank, if they are reordered
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    std::vector<SimulatedTask> tasks = TRY(simulated_tasks(plan, rank, inputs));
    if (ahead > 0) {
      places_of_tasks.push_back(order_of_tasks(plan, rank, place_of_tensor, ahead));
      reorder(tasks, places_of_tasks.back());
    }
    simulation.add_rank(std::move(tasks));
  }
  auto cost = simulation.run();
  if (!cost || spans == nullptr) return cost;
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    const std::vector<TaskSpan>& simulated = simulation.spans(rank);
    std::vector<TaskSpan>& to = spans->emplace_back(simulated);
    if (ahead == 0) continue;
    for (std::size_t t = 0; t < to.size(); ++t) to[t] = simulated[places_of_tasks[rank][t]];
  }
  return cost;
}

}  // namespace

Result<std::vector<SimulatedTask>> simulated_tasks(const Plan& plan, std::uint32_t rank,
                                                   const CostInputs& inputs) {
  CINCH_TRY(check_inputs(plan, inputs));
  const TaskCosts costs(plan, inputs);
  std::vector<SimulatedTask> tasks;
  tasks.reserve(plan.ranks[rank].tasks.size());
  for (const Task& task : plan.ranks[rank].tasks) {
    if (task.kind == TaskKind::Synchronise) {
      return invalid("a `sync` whose collectives only show on the way cannot be predicted");
    }
    SimulatedTask& to = tasks.emplace_back();
    to.ready_seconds =
        ready_seconds_of(plan, task, inputs.ready_seconds) * slowness_of(inputs, rank);
    to.kind = task.kind;
    to.lane = task.lane();
    to.after = task.after;
    to.seconds = costs.seconds(task) * slowness_of(inputs, rank);
    if (task.kind != TaskKind::Exchange) continue;
    to.exchange = task.exchange;
    to.peer = task.peer;
    to.sent_bytes = sent_bytes(plan, rank, task, costs);
    const bool is_message =
        task.exchange == ExchangeKind::Send || task.exchange == ExchangeKind::Receive;
    to.is_within = is_message && inputs.network.is_within(rank, task.peer);
    to.line = to.is_within ? inputs.network.within.line : inputs.network.of(task.exchange).line;
    const double sent = to.total_bytes();
    to.seconds = inputs.exchange_work[NetworkModel::index_of(task.exchange)].at(sent);
  }
  return tasks;
}

double slot_bytes(const Plan& plan, std::uint32_t rank, const Task& exchange, std::uint32_t slot,
                  const CostInputs& inputs) {
  return TaskCosts(plan, inputs).bytes(plan.ranks[rank], exchange, slot);
}

Result<PlanCost> estimate_cost(const Plan& plan, const CostInputs& inputs, PlanSpans* spans) {
  CINCH_TRY(check_inputs(plan, inputs));
  const auto& ready = inputs.ready_seconds;
  if (ready.empty()) return simulate(plan, inputs, 0, spans);
  // Ranks learn the order from a first step in the plan's own order, as SyncSession does.
  const PlanCost first = TRY(simulate(plan, inputs, 0, nullptr));
  const bool waits = 2 * std::ranges::max(ready) > first.seconds;
  return simulate(plan, inputs, waits ? kFewBundlesAhead : kBundlesAhead, spans);
}

std::vector<double> tensor_ends(const Plan& plan, const PlanSpans& spans) {
  std::vector<double> ends(plan.tensors.size(), 0);
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    for (std::size_t t = 0; t < spans[rank].size(); ++t) {
      for (const std::uint32_t group : plan.ranks[rank].tasks[t].groups) {
        for (const std::uint32_t piece : plan.groups[group].pieces) {
          double& end = ends[plan.pieces[piece].tensor];
          end = std::max(end, spans[rank][t].end);
        }
      }
    }
  }
  return ends;
}

void PlanSimulation::add_rank(std::vector<SimulatedTask> tasks) {
  Rank& rank = ranks_.emplace_back();
  rank.tasks = std::move(tasks);
  rank.next.resize(rank.tasks.size());
  for (std::uint32_t t = 0; t < rank.tasks.size(); ++t) {
    const SimulatedTask& task = rank.tasks[t];
    rank.spans.push_back({0, 0, task.total_bytes()});
    rank.missing.push_back(task.after.size() + (task.ready_seconds > 0 ? 1 : 0));
    if (task.ready_seconds > 0 && is_on_device()) {
      rank.arrivals.emplace_back(task.ready_seconds, t);
    } else if (task.ready_seconds > 0) {
      arrivals_.push({task.ready_seconds, static_cast<std::uint32_t>(ranks_.size() - 1), t});
    }
    for (const std::uint32_t earlier : task.after) rank.next[earlier].push_back(t);
    if (task.kind == TaskKind::Exchange) {
      rank.exchanges.push_back(t);
    } else if (rank.missing.back() == 0) {
      ready_on(rank, lane_of(task)).push(t);
    }
  }
  std::ranges::sort(rank.arrivals);
}

Lane PlanSimulation::lane_of(const SimulatedTask& task) const {
  return is_on_device() || task.lane == Lane::Network ? task.lane : Lane::Compute;
}

double PlanSimulation::speed(std::uint32_t machine) const {
  const double wanted = busy_threads_[machine];
  return wanted > cores_.cores ? cores_.cores / wanted : 1;
}

double PlanSimulation::threads_of(Lane lane) const {
  if (lane == Lane::Network) return 1;
  if (lane == Lane::Cpus) return cores_.threads_beside_device.value_or(cores_.threads);
  return is_on_device() ? 0 : cores_.threads;
}

void PlanSimulation::start_work(std::uint32_t rank, Lane lane, std::uint32_t task) {
  on(ranks_[rank], lane) = {true, task, ranks_[rank].tasks[task].seconds};
  ranks_[rank].spans[task].begin = now_;
  busy_threads_[rank / cores_.ranks_per_machine] += threads_of(lane);
}

double PlanSimulation::next_arrival(const Rank& rank) const {
  if (rank.num_arrived == rank.arrivals.size()) return kNever;
  const bool stands_still = on(rank, Lane::Compute).is_running;
  return stands_still ? kNever : now_ + rank.arrivals[rank.num_arrived].first - rank.backward;
}

void PlanSimulation::take_arrivals(std::uint32_t rank) {
  Rank& own = ranks_[rank];
  while (own.num_arrived < own.arrivals.size() &&
         own.arrivals[own.num_arrived].first <= own.backward) {
    release(rank, own.arrivals[own.num_arrived++].second);
  }
}

// Sends bytes out of one link and into the other; returns when the last byte has arrived.
double PlanSimulation::pass(std::uint32_t from, std::uint32_t to, const SimulatedTask& task) {
  const Line& line = task.line;
  LinkTime& out = task.is_within ? ranks_[from].out_within : ranks_[from].out;
  LinkTime& in = task.is_within ? ranks_[to].in_within : ranks_[to].in;
  const LinkClock::duration on_link = duration_of(task.sent_bytes[to] * line.slope);
  const LinkTime::Point now = LinkTime::Point(duration_of(now_));
  const LinkTime::Point is_out = out.take(now, now, on_link);
  const LinkTime::Point reaches = is_out - on_link + duration_of(line.base);
  return static_cast<double>(in.take(now, reaches, on_link).time_since_epoch().count()) /
         kNanoseconds;
}

void PlanSimulation::match(std::uint32_t from, std::uint32_t to) {
  Way& way = ways_[from * ranks_.size() + to];
  while (!way.sent.empty() && !way.received.empty() && way.sent.front().arrival < kNever) {
    const Sent sent = way.sent.front();
    const double end = std::max(now_, sent.arrival);
    events_.push({end, from, sent.task});
    events_.push({end, to, way.received.front()});
    way.sent.pop_front();
    way.received.pop_front();
    ++way.num_matched;
  }
}

void PlanSimulation::send_over_links(std::uint64_t bytes, const Transfer& transfer) {
  if (bytes == 0) {
    arrive(transfer);
    return;
  }
  const Status sent = links_->send(transfer.from, transfer.to, bytes, transfers_.size());
  transfers_.push_back(transfer);
  if (!sent && status_) status_ = sent;
}

void PlanSimulation::arrive(const Transfer& transfer) {
  if (transfer.is_message) {
    Way& way = ways_[transfer.from * ranks_.size() + transfer.to];
    way.sent[transfer.number - way.num_matched].arrival = now_;
    match(transfer.from, transfer.to);
    return;
  }
  for (const std::uint32_t rank : {transfer.from, transfer.to}) {
    --meetings_[transfer.number].num_on_way[rank];
    end_meeting(transfer.number, rank);
  }
}

// A rank has left a collective when all have joined it, and its bytes have arrived.
void PlanSimulation::end_meeting(std::size_t number, std::uint32_t rank) {
  const Meeting& meeting = meetings_[number];
  if (meeting.num_joined < ranks_.size() || meeting.num_on_way[rank] > 0) return;
  events_.push({now_, rank, meeting.tasks[rank]});
}

void PlanSimulation::join_over_links(std::uint32_t rank, const SimulatedTask& task,
                                     std::size_t number) {
  const auto world = static_cast<std::uint32_t>(ranks_.size());
  Meeting& meeting = meetings_[number];
  // Nobody leaves before all have joined.
  for (std::uint32_t i = 1; i < world; ++i) {
    const std::uint32_t to = (rank + i) % world;
    const auto bytes = static_cast<std::uint64_t>(std::llround(task.sent_bytes[to]));
    if (bytes == 0) continue;
    ++meeting.num_on_way[rank];
    ++meeting.num_on_way[to];
    send_over_links(bytes, {rank, to, number, false});
  }
  if (++meeting.num_joined < world) return;
  for (std::uint32_t each = 0; each < world; ++each) end_meeting(number, each);
}

void PlanSimulation::join(std::uint32_t rank, std::uint32_t task) {
  const std::size_t number = ranks_[rank].num_collectives++;
  const std::size_t world = ranks_.size();
  if (number == meetings_.size()) {
    meetings_.push_back({std::vector<double>(world), Indices(world), 0, Indices(world)});
  }
  Meeting& meeting = meetings_[number];
  const SimulatedTask& of = ranks_[rank].tasks[task];
  meeting.tasks[rank] = task;
  if (links_ != nullptr) {
    join_over_links(rank, of, number);
    return;
  }
  for (std::size_t i = 1; i < world; ++i) {
    const auto to = static_cast<std::uint32_t>((rank + i) % world);
    const double arrival = pass(rank, to, of);
    meeting.end[to] = std::max(meeting.end[to], arrival);
    meeting.end[rank] = std::max(meeting.end[rank], arrival);
  }
  if (++meeting.num_joined < world) return;
  for (std::uint32_t each = 0; each < world; ++each) {
    events_.push({std::max(now_, meeting.end[each]), each, meeting.tasks[each]});
  }
  meeting = {};
}

void PlanSimulation::start_exchange(std::uint32_t rank, std::uint32_t task) {
  Rank& own = ranks_[rank];
  const SimulatedTask& of = own.tasks[task];
  if (of.exchange == ExchangeKind::Send && links_ != nullptr) {
    Way& way = ways_[rank * ranks_.size() + of.peer];
    const Transfer message{rank, of.peer, way.num_matched + way.sent.size(), true};
    way.sent.push_back({task, kNever});
    send_over_links(static_cast<std::uint64_t>(std::llround(of.sent_bytes[of.peer])), message);
  } else if (of.exchange == ExchangeKind::Send) {
    const double arrival = pass(rank, of.peer, of);
    ways_[rank * ranks_.size() + of.peer].sent.push_back({task, arrival});
    match(rank, of.peer);
  } else if (of.exchange == ExchangeKind::Receive) {
    ways_[of.peer * ranks_.size() + rank].received.push_back(task);
    match(of.peer, rank);
  } else {
    join(rank, task);
  }
}

void PlanSimulation::start_tasks(std::uint32_t rank) {
  Rank& own = ranks_[rank];
  while (!on(own, Lane::Network).is_running && own.num_started < own.exchanges.size() &&
         own.missing[own.exchanges[own.num_started]] == 0) {
    const std::uint32_t task = own.exchanges[own.num_started++];
    own.spans[task].begin = now_;
    if (own.num_in_flight++ == 0) own.in_flight_since = now_;
    if (own.tasks[task].seconds > 0) {
      start_work(rank, Lane::Network, task);
    } else {
      start_exchange(rank, task);
    }
  }
  for (std::size_t i = 0; i < kNumLanes; ++i) {
    if (own.work[i].is_running || own.ready[i].empty()) continue;
    const std::uint32_t task = own.ready[i].top();
    own.ready[i].pop();
    start_work(rank, static_cast<Lane>(i), task);
  }
}

void PlanSimulation::end_task(std::uint32_t rank, std::uint32_t task) {
  Rank& own = ranks_[rank];
  ++own.num_ended;
  own.cost.seconds = now_;
  own.spans[task].end = now_;
  for (const std::uint32_t later : own.next[task]) release(rank, later);
  if (own.tasks[task].kind == TaskKind::Exchange) {
    if (--own.num_in_flight == 0) own.cost.network_seconds += now_ - own.in_flight_since;
  }
  start_tasks(rank);
}

// One thing less to wait for.
void PlanSimulation::release(std::uint32_t rank, std::uint32_t task) {
  Rank& own = ranks_[rank];
  const bool is_ready = --own.missing[task] == 0;
  const SimulatedTask& of = own.tasks[task];
  if (is_ready && of.kind != TaskKind::Exchange) ready_on(own, lane_of(of)).push(task);
}

double PlanSimulation::next_time() {
  double next = events_.empty() ? kNever : events_.top().time;
  if (!arrivals_.empty()) next = std::min(next, arrivals_.top().time);
  if (links_ != nullptr) next = std::min(next, links_->next_arrival());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const double rate = speed(rank / cores_.ranks_per_machine);
    for (const Work& work : ranks_[rank].work) {
      if (work.is_running) next = std::min(next, now_ + work.left / rate);
    }
    next = std::min(next, next_arrival(ranks_[rank]));
  }
  return next;
}

// Advances running work to `time`; work that ends then is ended.
void PlanSimulation::advance_to(double time) {
  std::vector<std::pair<std::uint32_t, Lane>> over;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& own = ranks_[rank];
    const double rate = speed(rank / cores_.ranks_per_machine);
    if (next_arrival(own) <= time) {
      own.backward = own.arrivals[own.num_arrived].first;
    } else if (!on(own, Lane::Compute).is_running) {
      own.backward += time - now_;
    }
    for (std::size_t i = 0; i < kNumLanes; ++i) {
      Work& work = own.work[i];
      if (!work.is_running) continue;
      if (now_ + work.left / rate <= time) over.emplace_back(rank, static_cast<Lane>(i));
      work.left -= (time - now_) * rate;
    }
    for (const Lane lane : {Lane::Compute, Lane::Cpus}) {
      const Work& work = on(own, lane);
      if (!work.is_running) continue;
      const bool encodes = own.tasks[work.task].kind == TaskKind::Encode;
      (encodes ? own.cost.encode_seconds : own.cost.decode_seconds) += time - now_;
    }
  }
  now_ = time;
  if (links_ != nullptr) {
    arrived_.clear();
    links_->advance(time, arrived_);
    for (const std::uint64_t id : arrived_) arrive(transfers_[id]);
  }
  for (const auto& [rank, lane] : over) {
    Work& work = on(ranks_[rank], lane);
    work.is_running = false;
    busy_threads_[rank / cores_.ranks_per_machine] -= threads_of(lane);
    if (lane == Lane::Network) {
      start_exchange(rank, work.task);
      start_tasks(rank);
    } else {
      end_task(rank, work.task);
    }
  }
  while (!events_.empty() && events_.top().time <= now_) {
    const Event event = events_.top();
    events_.pop();
    end_task(event.rank, event.task);
  }
  while (!arrivals_.empty() && arrivals_.top().time <= now_) {
    const Event arrival = arrivals_.top();
    arrivals_.pop();
    release(arrival.rank, arrival.task);
    start_tasks(arrival.rank);
  }
  for (std::uint32_t rank = 0; rank < ranks_.size() && is_on_device(); ++rank) {
    take_arrivals(rank);
    start_tasks(rank);
  }
}

PlanCost PlanSimulation::result() const {
  PlanCost most;
  for (const Rank& rank : ranks_) {
    most.seconds = std::max(most.seconds, rank.cost.seconds);
    most.encode_seconds = std::max(most.encode_seconds, rank.cost.encode_seconds);
    most.decode_seconds = std::max(most.decode_seconds, rank.cost.decode_seconds);
    most.network_seconds = std::max(most.network_seconds, rank.cost.network_seconds);
  }
  return most;
}

Result<PlanCost> PlanSimulation::run() {
  ways_.resize(ranks_.size() * ranks_.size());
  busy_threads_.assign(ranks_.size() / cores_.ranks_per_machine + 1, 0);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) start_tasks(rank);
  double time = next_time();
  while (time < kNever && status_) {
    advance_to(time);
    time = next_time();
  }
  CINCH_TRY(status_);
  const bool is_over = std::ranges::all_of(
      ranks_, [](const Rank& rank) { return rank.num_ended == rank.tasks.size(); });
  if (!is_over && links_ != nullptr) return invalid("bytes that take weeks to arrive");
  if (!is_over) return invalid("a plan whose tasks wait for each other");
  return result();
}

}  // namespace cinch::rt
