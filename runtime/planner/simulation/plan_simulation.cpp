#include "runtime/planner/simulation/plan_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cinch::rt {
namespace {

// Times of links are whole nanoseconds, far below the precision of the model.
constexpr double kNanoseconds = 1e9;
constexpr double kNever = std::numeric_limits<double>::infinity();
// Of a unit: sums of times are no more exact.
constexpr double kSameUnit = 1e-9;

LinkClock::duration duration_of(double seconds) {
  return LinkClock::duration(std::llround(seconds * kNanoseconds));
}

}  // namespace

double SimulatedTask::sent_bytes() const {
  double bytes = 0;
  for (const SimulatedFlow& flow : flows) bytes += flow.bytes * flow.copies * flow.count;
  return bytes * rounds;
}

SimulatedTasks::SimulatedTasks(std::vector<SimulatedTask> all) : tasks(std::move(all)) {
  next.resize(tasks.size());
  for (std::uint32_t t = 0; t < tasks.size(); ++t) {
    for (const std::uint32_t earlier : tasks[t].after) next[earlier].push_back(t);
    if (tasks[t].kind == TaskKind::Exchange) exchanges.push_back(t);
  }
}

void PlanSimulation::add_rank(std::shared_ptr<const SimulatedTasks> tasks, std::uint32_t shift) {
  const auto number = static_cast<std::uint32_t>(ranks_.size());
  Rank& rank = ranks_.emplace_back();
  rank.of = std::move(tasks);
  rank.shift = shift;
  for (std::uint32_t t = 0; t < rank.of->tasks.size(); ++t) {
    const SimulatedTask& task = rank.task(t);
    rank.spans.push_back({0, 0, task.sent_bytes()});
    const std::size_t missing = task.after.size() + (task.ready_seconds > 0 ? 1 : 0);
    rank.missing.push_back(static_cast<std::uint32_t>(missing));
    if (task.ready_seconds > 0 && is_on_device()) {
      rank.arrivals.emplace_back(task.ready_seconds, t);
    } else if (task.ready_seconds > 0) {
      arrivals_.push({task.ready_seconds, number, t});
    }
    if (task.kind != TaskKind::Exchange && missing == 0) ready_on(rank, lane_of(task)).push(t);
  }
  std::ranges::sort(rank.arrivals);
}

Lane PlanSimulation::lane_of(const SimulatedTask& task) const {
  return is_on_device() || task.lane == Lane::Network ? task.lane : Lane::Compute;
}

double PlanSimulation::threads_of(Lane lane) const {
  if (lane == Lane::Network) return 1;
  if (lane == Lane::Cpus) return cores_.threads_beside_device.value_or(cores_.threads);
  return is_on_device() ? 0 : cores_.threads;
}

void PlanSimulation::settle(Machine& machine) const {
  machine.done += (now_ - machine.since) * machine.rate;
  machine.since = now_;
}

void PlanSimulation::schedule(std::uint32_t machine) {
  Machine& of = machines_[machine];
  const double wanted = of.busy_threads;
  of.rate = wanted > cores_.cores ? cores_.cores / wanted : 1;
  ++of.version;
  const auto is_over = [this](const Machine::End& end) {
    const Work& work = on(ranks_[end.rank], end.lane);
    return !work.is_running || work.number != end.work;
  };
  while (!of.ends.empty() && is_over(of.ends.top())) of.ends.pop();
  if (of.ends.empty()) return;
  const double left = std::max(0.0, of.ends.top().done - of.done);
  ends_.push({now_ + left / of.rate, machine, of.version});
}

void PlanSimulation::schedule_backward(std::uint32_t rank) {
  const Rank& own = ranks_[rank];
  if (own.num_arrived == own.arrivals.size()) return;
  const auto number = static_cast<std::uint32_t>(own.num_arrived);
  backward_.push({own.backward_since + (own.arrivals[number].first - own.backward), rank, number});
}

// An event counts if the device is free, and its gradient is the next one still.
bool PlanSimulation::is_late(const Event& event) const {
  const Rank& rank = ranks_[event.rank];
  if (rank.work[static_cast<std::size_t>(Lane::Compute)].is_running) return true;
  if (event.task != rank.num_arrived) return true;
  return event.time != rank.backward_since + (rank.arrivals[event.task].first - rank.backward);
}

void PlanSimulation::start_work(std::uint32_t rank, Lane lane, std::uint32_t task) {
  Rank& own = ranks_[rank];
  Machine& machine = machine_of(rank);
  settle(machine);
  const SimulatedTask& of = own.task(task);
  const auto left = own.units_left.find(task);
  const bool goes_on = left != own.units_left.end();
  const double share = goes_on ? left->second / of.units : 1;
  if (!goes_on) own.spans[task].begin = now_;
  on(own, lane) = {true, task, ++num_works_, now_, machine.done, 0};
  machine.ends.push({machine.done + of.seconds * share, rank, lane, num_works_});
  machine.busy_threads += threads_of(lane);
  // The backward pass stands still while the device encodes.
  if (lane == Lane::Compute && is_on_device()) own.backward += now_ - own.backward_since;
  schedule(rank / cores_.ranks_per_machine);
}

void PlanSimulation::interrupt(std::uint32_t rank, Lane lane) {
  Rank& own = ranks_[rank];
  Work& work = on(own, lane);
  const SimulatedTask& of = own.task(work.task);
  const double unit = of.seconds / of.units;
  if (of.units <= 1 || unit <= 0 || work.units_after > 0) return;
  const auto before = own.units_left.find(work.task);
  const double units = before == own.units_left.end() ? of.units : before->second;
  Machine& machine = machine_of(rank);
  settle(machine);
  const double done = std::floor((machine.done - work.begin) / unit + kSameUnit) + 1;
  if (done >= units) return;
  work.units_after = units - done;
  work.number = ++num_works_;
  machine.ends.push({work.begin + done * unit, rank, lane, work.number});
  schedule(rank / cores_.ranks_per_machine);
}

void PlanSimulation::end_work(std::uint32_t rank, Lane lane) {
  Rank& own = ranks_[rank];
  Work& work = on(own, lane);
  const std::uint32_t task = work.task;
  work.is_running = false;
  machine_of(rank).busy_threads -= threads_of(lane);
  schedule(rank / cores_.ranks_per_machine);
  if (lane == Lane::Compute || lane == Lane::Cpus) {
    const bool encodes = own.task(task).kind == TaskKind::Encode;
    (encodes ? own.cost.encode_seconds : own.cost.decode_seconds) += now_ - work.since;
  }
  if (lane == Lane::Compute && is_on_device()) {
    own.backward_since = now_;
    schedule_backward(rank);
  }
  if (lane == Lane::Network) {
    start_exchange(rank, task);
    start_tasks(rank);
  } else if (work.units_after > 0) {
    own.units_left[task] = work.units_after;
    own.ready[static_cast<std::size_t>(lane)].push(task);
    start_tasks(rank);
  } else {
    own.units_left.erase(task);
    end_task(rank, task);
  }
}

void PlanSimulation::take_arrivals(std::uint32_t rank) {
  Rank& own = ranks_[rank];
  while (own.num_arrived < own.arrivals.size() &&
         own.arrivals[own.num_arrived].first <= own.backward) {
    release(rank, own.arrivals[own.num_arrived++].second);
  }
}

// Sends bytes out of one link and into the other; returns when the last byte has arrived.
double PlanSimulation::pass(std::uint32_t from, const SimulatedFlow& flow,
                            const SimulatedTask& task) {
  const Line& line = task.line;
  const std::uint32_t to = other(from, flow.to);
  LinkTime& out = task.is_within ? ranks_[from].out_within : ranks_[from].out;
  LinkTime& in = task.is_within ? ranks_[to].in_within : ranks_[to].in;
  const LinkClock::duration on_link = duration_of(flow.bytes * line.slope);
  const LinkTime::Point now = LinkTime::Point(duration_of(now_));
  const LinkTime::Point is_out = out.take(now, now, on_link);
  const LinkTime::Point reaches = is_out - on_link + duration_of(line.base);
  return static_cast<double>(in.take(now, reaches, on_link).time_since_epoch().count()) /
         kNanoseconds;
}

PlanSimulation::Way& PlanSimulation::way(std::uint32_t from, std::uint32_t to, FlowScope scope) {
  const bool is_own = scope == FlowScope::OwnMachine;
  return ways_[(from * ranks_.size() + to) * 2 + (is_own ? 1 : 0)];
}

void PlanSimulation::match(std::uint32_t from, std::uint32_t to, FlowScope scope,
                           std::size_t number) {
  const Way& on_way = way(from, to, scope);
  if (number >= on_way.sent.size() || number >= on_way.received.size()) return;
  const Sent& sent = on_way.sent[number];
  if (sent.arrival == kNever) return;
  const double end = std::max(now_, sent.arrival);
  events_.push({end, from, sent.task});
  events_.push({end, to, on_way.received[number]});
}

void PlanSimulation::send_over_links(const SimulatedFlow& flow, const Transfer& transfer) {
  const double bytes = std::round(flow.bytes);
  if (bytes == 0) {
    arrive(transfer);
    return;
  }
  SimulatedFlow to = flow;
  to.to = transfer.to;
  to.bytes = bytes;
  const Status sent = links_->send(transfer.from, to, transfers_.size());
  transfers_.push_back(transfer);
  if (!sent && status_) status_ = sent;
}

void PlanSimulation::arrive(const Transfer& transfer) {
  if (transfer.is_message) {
    way(transfer.from, transfer.to, transfer.scope).sent[transfer.number].arrival = now_;
    match(transfer.from, transfer.to, transfer.scope, transfer.number);
    return;
  }
  Meeting& meeting = meetings_[transfer.number];
  for (const std::uint32_t rank : {transfer.from, transfer.to}) {
    --meeting.num_on_way[rank];
    end_meeting(transfer.number, rank);
    if (transfer.from == transfer.to) break;
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
  for (const SimulatedFlow& flow : task.flows) {
    if (std::round(flow.bytes) == 0) continue;
    const std::uint32_t to = other(rank, flow.to);
    ++meeting.num_on_way[rank];
    if (to != rank) ++meeting.num_on_way[to];
    send_over_links(flow, {rank, to, number, false});
  }
  if (++meeting.num_joined < world) return;
  for (std::uint32_t each = 0; each < world; ++each) end_meeting(number, each);
}

void PlanSimulation::join(std::uint32_t rank, std::uint32_t task) {
  Rank& own = ranks_[rank];
  const std::uint32_t rounds = links_ == nullptr ? 1 : own.task(task).rounds;
  const std::size_t number = own.num_collectives;
  own.num_collectives += rounds;
  if (rounds > 1) own.rounds_left[task] = {number + 1, rounds - 1};
  meet(rank, task, number);
}

void PlanSimulation::meet(std::uint32_t rank, std::uint32_t task, std::size_t number) {
  const std::size_t world = ranks_.size();
  while (number >= meetings_.size()) {
    meetings_.push_back({std::vector<double>(world), Indices(world), 0, Indices(world)});
  }
  Meeting& meeting = meetings_[number];
  const SimulatedTask& of = ranks_[rank].task(task);
  meeting.tasks[rank] = task;
  if (links_ != nullptr) {
    join_over_links(rank, of, number);
    return;
  }
  for (const SimulatedFlow& flow : of.flows) {
    const double arrival = pass(rank, flow, of);
    double& end = meeting.end[other(rank, flow.to)];
    end = std::max(end, arrival);
    meeting.end[rank] = std::max(meeting.end[rank], arrival);
  }
  if (++meeting.num_joined < world) return;
  for (std::uint32_t each = 0; each < world; ++each) {
    events_.push({std::max(now_, meeting.end[each]), each, meeting.tasks[each]});
  }
  meeting = {};
}

void PlanSimulation::start_exchange(std::uint32_t rank, std::uint32_t task) {
  const SimulatedTask& of = ranks_[rank].task(task);
  const std::uint32_t peer = other(rank, of.peer);
  if (of.is_left_out) {
    events_.push({now_, rank, task});
  } else if (of.exchange == ExchangeKind::Send) {
    Way& to = way(rank, peer, of.scope);
    const bool has_links = links_ != nullptr;
    const std::size_t number = to.sent.size();
    to.sent.push_back({task, has_links ? kNever : pass(rank, of.flows[0], of)});
    if (has_links) send_over_links(of.flows[0], {rank, peer, number, true, of.scope});
    if (!has_links) match(rank, peer, of.scope, number);
  } else if (of.exchange == ExchangeKind::Receive) {
    Way& from = way(peer, rank, of.scope);
    from.received.push_back(task);
    match(peer, rank, of.scope, from.received.size() - 1);
  } else {
    join(rank, task);
  }
}

void PlanSimulation::start_tasks(std::uint32_t rank) {
  Rank& own = ranks_[rank];
  const Indices& exchanges = own.of->exchanges;
  while (!on(own, Lane::Network).is_running && own.num_started < exchanges.size() &&
         own.missing[exchanges[own.num_started]] == 0) {
    const std::uint32_t task = exchanges[own.num_started++];
    own.spans[task].begin = now_;
    if (own.num_in_flight++ == 0) own.in_flight_since = now_;
    if (own.task(task).seconds > 0) {
      start_work(rank, Lane::Network, task);
    } else {
      start_exchange(rank, task);
    }
  }
  for (std::size_t i = 0; i < kNumLanes; ++i) {
    if (own.ready[i].empty()) continue;
    const auto lane = static_cast<Lane>(i);
    const std::uint32_t task = own.ready[i].top();
    if (own.work[i].is_running) {
      if (task < own.work[i].task) interrupt(rank, lane);
      continue;
    }
    own.ready[i].pop();
    start_work(rank, lane, task);
  }
}

void PlanSimulation::end_task(std::uint32_t rank, std::uint32_t task) {
  Rank& own = ranks_[rank];
  if (const auto next = own.rounds_left.find(task); next != own.rounds_left.end()) {
    const std::size_t number = next->second.first++;
    if (--next->second.second == 0) own.rounds_left.erase(next);
    return meet(rank, task, number);
  }
  ++own.num_ended;
  own.cost.seconds = now_;
  own.spans[task].end = now_;
  for (const std::uint32_t later : own.of->next[task]) release(rank, later);
  if (own.task(task).kind == TaskKind::Exchange) {
    if (--own.num_in_flight == 0) own.cost.network_seconds += now_ - own.in_flight_since;
  }
  start_tasks(rank);
}

// One thing less to wait for.
void PlanSimulation::release(std::uint32_t rank, std::uint32_t task) {
  Rank& own = ranks_[rank];
  const bool is_ready = --own.missing[task] == 0;
  const SimulatedTask& of = own.task(task);
  if (is_ready && of.kind != TaskKind::Exchange) ready_on(own, lane_of(of)).push(task);
}

double PlanSimulation::next_time() {
  const auto is_stale = [this](const MachineEvent& event) {
    return machines_[event.machine].version != event.version;
  };
  while (!ends_.empty() && is_stale(ends_.top())) ends_.pop();
  while (!backward_.empty() && is_late(backward_.top())) backward_.pop();
  double next = events_.empty() ? kNever : events_.top().time;
  if (!ends_.empty()) next = std::min(next, ends_.top().time);
  if (!arrivals_.empty()) next = std::min(next, arrivals_.top().time);
  if (!backward_.empty()) next = std::min(next, backward_.top().time);
  if (links_ != nullptr) next = std::min(next, links_->next_arrival());
  return next;
}

// Work that ends up to `time` is ended.
void PlanSimulation::advance_to(double time) {
  now_ = time;
  std::vector<std::pair<std::uint32_t, Lane>> over;
  while (!ends_.empty() && ends_.top().time <= time) {
    const MachineEvent event = ends_.top();
    ends_.pop();
    Machine& machine = machines_[event.machine];
    if (machine.version != event.version) continue;
    settle(machine);
    const double done = machine.ends.top().done;
    machine.done = std::max(machine.done, done);
    while (!machine.ends.empty() && machine.ends.top().done <= machine.done) {
      const Machine::End end = machine.ends.top();
      machine.ends.pop();
      const Work& work = on(ranks_[end.rank], end.lane);
      if (work.is_running && work.number == end.work) over.emplace_back(end.rank, end.lane);
    }
  }
  std::ranges::sort(over);
  if (links_ != nullptr) {
    arrived_.clear();
    links_->advance(time, arrived_);
    for (const std::uint64_t id : arrived_) arrive(transfers_[id]);
  }
  for (const auto& [rank, lane] : over) end_work(rank, lane);
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
  while (!backward_.empty() && backward_.top().time <= now_) {
    const Event arrival = backward_.top();
    backward_.pop();
    if (is_late(arrival)) continue;
    Rank& own = ranks_[arrival.rank];
    own.backward = own.arrivals[arrival.task].first;
    own.backward_since = now_;
    take_arrivals(arrival.rank);
    schedule_backward(arrival.rank);
    start_tasks(arrival.rank);
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
  machines_.resize(ranks_.size() / cores_.ranks_per_machine + 1);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    schedule_backward(rank);
    start_tasks(rank);
  }
  double time = next_time();
  while (time < kNever && status_) {
    advance_to(time);
    time = next_time();
  }
  CINCH_TRY(status_);
  const bool is_over = std::ranges::all_of(
      ranks_, [](const Rank& rank) { return rank.num_ended == rank.of->tasks.size(); });
  if (!is_over && links_ != nullptr) return invalid("bytes that take weeks to arrive");
  if (!is_over) return invalid("a plan whose tasks wait for each other");
  return result();
}

}  // namespace cinch::rt
