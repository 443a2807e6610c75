// What tasks wait for, and the thread that computes; exchanges are in plan_exchanges.cpp.
#include <fmt/format.h>

#include "runtime/sync/plan_runner.h"

namespace cinch::rt {
namespace {

// Does the task use the user's tensors?
bool takes_tensors(const Task& task) {
  if (task.on_cpus) return task.kind == TaskKind::Fetch || task.kind == TaskKind::Deliver;
  switch (task.kind) {
    case TaskKind::Encode:
      return task.from == Value::Gradient || task.from == Value::Update;
    case TaskKind::Decode:
    case TaskKind::Finish:
      return task.to == Value::Update;
    case TaskKind::Add:
    case TaskKind::Part:
    case TaskKind::Synchronise:
      return true;
    default:
      return false;
  }
}

bool writes_update(const Task& task) {
  if (task.on_cpus) return task.kind == TaskKind::Deliver;
  const bool decodes = task.kind == TaskKind::Decode || task.kind == TaskKind::Finish;
  return (decodes && task.to == Value::Update) || task.is_last_part() ||
         task.kind == TaskKind::Synchronise;
}

}  // namespace

PlanRunner::PlanRunner(const RunnerParts& parts)
    : parts_(parts),
      own_(parts.plan.ranks[parts.transport.rank()]),
      ranks_(parts.transport, parts.timeout),
      can_be_woken_(parts.transport.wake()),
      log_(parts.timeout) {
  const std::size_t num_tasks = own_.tasks.size();
  next_.resize(num_tasks);
  missing_.resize(num_tasks);
  sent_.resize(num_tasks);
  received_.resize(num_tasks);
  times_.tasks.resize(num_tasks);
  tensors_of_.resize(num_tasks);
  of_tensor_.resize(parts.plan.tensors.size());
  num_writers_.resize(parts.plan.tensors.size());
  times_.ready.resize(parts.plan.tensors.size());
  place_.resize(num_tasks);
  for (std::uint32_t t = 0; t < num_tasks; ++t) {
    place_[t] = t;
    for (const std::uint32_t earlier : task(t).after) next_[earlier].push_back(t);
    if (takes_tensors(task(t))) note_tensors(t);
    if (task(t).lane() != Lane::Network) continue;
    exchanges_.push_back(t);
    sent_[t].resize(task(t).reads.size());
    received_[t].resize(task(t).writes.size());
  }
  writers_left_ = num_writers_;
  flights_.reserve(exchanges_.size());
  computes_.thread = std::thread([this] { compute_loop(computes_); });
  const auto is_apart = [](const Task& of) { return of.lane() == Lane::Cpus; };
  if (!parts.has_gpu || std::ranges::none_of(own_.tasks, is_apart)) return;
  on_cpus_.thread = std::thread([this] { compute_loop(on_cpus_); });
}

void PlanRunner::compute_loop(Worker& worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(
        lock, [&] { return is_closing_ || (is_running_ && !failure_ && !worker.ready.empty()); });
    if (is_closing_) return;
    compute_one(worker, lock);
  }
}

PlanRunner::~PlanRunner() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  if (network_thread_.joinable()) {
    // Only the network thread may still be using the transport.
    parts_.transport.wake();
    network_thread_.join();
  }
  computes_.thread.join();
  if (on_cpus_.thread.joinable()) on_cpus_.thread.join();
}

void PlanRunner::note_tensors(std::uint32_t index) {
  PieceList pieces = pieces_of(parts_.plan, task(index));
  std::vector<std::uint32_t>& tensors = tensors_of_[index];
  for (const std::uint32_t piece : pieces) tensors.push_back(parts_.plan.pieces[piece].tensor);
  std::ranges::sort(tensors);
  tensors.erase(std::ranges::unique(tensors).begin(), tensors.end());
  for (const std::uint32_t tensor : tensors) {
    of_tensor_[tensor].push_back(index);
    if (writes_update(task(index))) ++num_writers_[tensor];
  }
}

void PlanRunner::set_order(const std::vector<std::uint32_t>& place_of_task) {
  const std::lock_guard lock(mutex_);
  place_ = place_of_task;
  std::ranges::sort(exchanges_, {}, [this](std::uint32_t t) { return place_[t]; });
}

void PlanRunner::begin(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  log_.begin();
  failure_.reset();
  flights_.clear();
  awaited_.clear();
  has_issued_ = false;
  num_left_ = own_.tasks.size();
  num_started_ = 0;
  computes_.ready = on_cpus_.ready = {};
  is_ready_.assign(of_tensor_.size(), false);
  is_prepared_.assign(of_tensor_.size(), 0);
  writers_left_ = num_writers_;
  for (std::uint32_t t = 0; t < own_.tasks.size(); ++t) {
    missing_[t] = task(t).after.size() + tensors_of_[t].size();
    if (missing_[t] == 0 && task(t).lane() != Lane::Network) let_compute(t);
    times_.tasks[t] = {};
  }
  std::ranges::fill(times_.ready, 0.0);
  times_.begin = seconds_now();
  times_.is_in_parts = false;
  last_move_ = Clock::now();
}

void PlanRunner::release(std::uint32_t index) {
  if (--missing_[index] == 0 && task(index).lane() != Lane::Network) let_compute(index);
}

void PlanRunner::make_ready(std::uint32_t tensor) {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_ready_[tensor]) return;
    is_ready_[tensor] = true;
    times_.ready[tensor] = seconds_now();
    last_move_ = Clock::now();
    for (const std::uint32_t index : of_tensor_[tensor]) release(index);
    wakes = is_next_ready();
  }
  changed_.notify_all();
  if (wakes) parts_.transport.wake();
}

void PlanRunner::fail_step(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
    parts_.cancelled = true;
  }
  changed_.notify_all();
  parts_.transport.wake();
}

std::optional<std::uint32_t> PlanRunner::find_unready() const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(is_ready_, false);
  if (found == is_ready_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - is_ready_.begin());
}

bool PlanRunner::waits_for_tensors() const {
  if (times_.ready.empty()) return false;
  const double last = std::ranges::max(times_.ready);
  return 2 * (last - times_.begin) > times_.end - times_.begin;
}

bool PlanRunner::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

bool PlanRunner::is_done(std::uint32_t tensor) const {
  const std::lock_guard lock(mutex_);
  return writers_left_[tensor] == 0;
}

bool PlanRunner::wait_for(std::uint32_t tensor) {
  std::unique_lock lock(mutex_);
  if (tensor >= is_ready_.size() || !is_ready_[tensor]) return false;
  changed_.wait(lock, [&] { return writers_left_[tensor] == 0 || failure_ || has_issued_; });
  return true;
}

void PlanRunner::end_task(std::uint32_t index) {
  times_.tasks[index].end = seconds_now();
  last_move_ = Clock::now();
  --num_left_;
  for (const std::uint32_t later : next_[index]) release(later);
  if (writes_update(task(index))) {
    for (const std::uint32_t tensor : tensors_of_[index]) --writers_left_[tensor];
  }
  changed_.notify_all();
}

Error PlanRunner::named(std::uint32_t index, const Error& error) const {
  if (error.kind == ErrorKind::CheckFailed) {
    // A check of the program itself: its user knows ranks, steps and tensors, not the plan's tasks.
    const bool has_tensor = std::ranges::any_of(parts_.plan.tensors, [&](const PlanTensor& tensor) {
      return error.message.starts_with(tensor.name + ":");
    });
    return {error.kind,
            fmt::format("rank {}, step {}, {}{}", parts_.transport.rank(), step_,
                        has_tensor ? "tensor " : "", error.message),
            error.native_code};
  }
  return {error.kind, fmt::format("{}: {}", describe_task(parts_.plan, task(index)), error.message),
          error.native_code};
}

std::string PlanRunner::task_of_step(std::uint32_t index) const {
  return fmt::format("step {}, {}", step_, describe_task(parts_.plan, task(index)));
}

void PlanRunner::note_failure(std::uint32_t index, const Error& error) {
  if (!failure_) failure_ = named(index, error);
  parts_.cancelled = true;
  changed_.notify_all();
}

// Tensors of a `sync` that is one task are used by no other task; one thread computes on all
// others, and copies those of the CPUs.
Status PlanRunner::work(std::uint32_t index, const std::function<Status()>& task_body) {
  for (const std::uint32_t tensor : tensors_of_[index]) {
    if (is_prepared_[tensor] != 0) continue;
    is_prepared_[tensor] = 1;
    CINCH_TRY(parts_.tensors.prepare(tensor));
  }
  if (Status status = task_body(); !status || !writes_update(task(index))) return status;
  for (const std::uint32_t tensor : tensors_of_[index]) {
    bool is_last = false;
    {
      const std::lock_guard lock(mutex_);
      is_last = writers_left_[tensor] == 1;
    }
    if (!is_last) continue;
    CINCH_TRY(parts_.tensors.deliver(tensor));
  }
  return Ok{};
}

void PlanRunner::compute_one(Worker& worker, std::unique_lock<std::mutex>& lock) {
  const std::uint32_t index = worker.ready.top().second;
  worker.ready.pop();
  ++num_computing_;
  lock.unlock();
  times_.tasks[index].begin = seconds_now();
  const Status status = work(index, [&] { return parts_.compute.run(task(index), parts_.memory); });
  lock.lock();
  --num_computing_;
  if (status) {
    end_task(index);
  } else {
    note_failure(index, status.error());
  }
  if (failure_ || num_left_ == 0 || is_next_ready()) parts_.transport.wake();
}

void TransportRanks::begin(Naming naming, std::function<std::string()> what) {
  naming_ = std::move(naming);
  what_ = std::move(what);
  has_failed_elsewhere_ = false;
}

Status TransportRanks::run(const Exchange& exchange, std::chrono::milliseconds timeout) {
  const auto ticket = transport_.start(exchange);
  Status status = ticket ? wait_for(transport_, *ticket, timeout, what_)
                         : Status(tl::unexpected<Error>(ticket.error()));
  if (!status) transport_.abandon(naming_(status.error()));
  return status;
}

Result<RankStatus> TransportRanks::agree(RankStatus own) {
  return agree_within(timeout_, own);
}

Result<RankStatus> TransportRanks::agree_within(std::chrono::milliseconds timeout,
                                                RankStatus status, const RankOffer& offer) {
  const RankWord own{static_cast<std::uint64_t>(status), offer};
  const std::uint32_t world = transport_.world();
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    parts_[rank] = {rank * sizeof own, sizeof own};
  }
  Exchange exchange{ExchangeKind::AllGather};
  exchange.input = std::span(reinterpret_cast<const std::uint8_t*>(&own), sizeof own);
  exchange.output =
      std::span(reinterpret_cast<std::uint8_t*>(words_.data()), words_.size() * sizeof own);
  exchange.received = parts_;
  CINCH_TRY(run(exchange, timeout));
  const std::uint64_t worst = std::ranges::max_element(words_, {}, &RankWord::status)->status;
  if (worst > static_cast<std::uint64_t>(RankStatus::NonFinite)) {
    return fail(ErrorKind::CorruptPayload, "a rank in an unknown state");
  }
  const auto all = static_cast<RankStatus>(worst);
  has_failed_elsewhere_ = all == RankStatus::Failed && status != RankStatus::Failed;
  return all;
}

Exchange TransportRanks::exchange_of(const CollectiveCall& call) {
  Exchange exchange{exchange_kind_of(call.collective.kind)};
  exchange.peer = call.collective.root;
  exchange.reduction = call.collective.reduction;
  exchange.dtype = call.dtype;
  exchange.input = call.input;
  exchange.output = call.output;
  const std::uint32_t world = transport_.world();
  const bool gathers = exchange.kind == ExchangeKind::AllGather;
  const std::uint32_t own = transport_.rank();
  const std::uint32_t size = call.groups.are_all() ? world : call.groups.size;
  const std::uint64_t part = gathers ? call.input.size() : call.input.size() / size;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const bool is_member = call.groups.are_together(own, rank);
    parts_[rank] = is_member ? ByteRange{call.groups.number(rank) * part, part} : ByteRange{};
  }
  exchange.sent = exchange.received = parts_;
  return exchange;
}

Result<RankStatus> TransportRanks::exchange(const CollectiveCall& call) {
  auto all = agree_within(timeout_, RankStatus::Good, offer_of(call));
  if (!all || *all != RankStatus::Good) return all;
  if (is_routed(call.collective.kind)) return exchange_routed(call);
  const Exchange exchange = exchange_of(call);
  if (exchange.kind == ExchangeKind::Broadcast) {
    // Sizes come from images, and no transport compares these two.
    if (call.input.size() != call.output.size()) {
      return fail(ErrorKind::Internal, "a broadcast between buffers of different sizes");
    }
    if (exchange.peer == transport_.rank()) std::ranges::copy(call.input, call.output.begin());
  }
  CINCH_TRY(run(exchange, timeout_));
  return RankStatus::Good;
}

Result<RankStatus> TransportRanks::exchange_routed(const CollectiveCall& call) {
  std::vector<RankOffer> offers;
  offers.reserve(words_.size());
  for (const RankWord& word : words_) offers.push_back(word.offer);
  const auto received = TRY(received_parts(call, offers, transport_.rank()));
  Exchange exchange{exchange_kind_of(call.collective.kind)};
  exchange.dtype = call.dtype;
  exchange.input = call.input;
  exchange.output = call.output;
  exchange.received = received;
  std::ranges::fill(parts_, ByteRange{});
  if (call.collective.kind == CollectiveKind::BroadcastFrom) {
    exchange.peer = call.to;
    if (call.to == transport_.rank()) std::ranges::copy(call.input, call.output.begin());
  } else if (names_receiver(call.collective.kind)) {
    parts_[call.to] = {0, call.input.size()};
  }
  exchange.sent = parts_;
  Status status = run(exchange, timeout_);
  // The sizes are those that ranks told one another.
  if (!status && status.error().kind == ErrorKind::Internal) {
    status.error().kind = ErrorKind::CorruptPayload;
  }
  CINCH_TRY(status);
  end_routed(call, received);
  return RankStatus::Good;
}

Error TransportRanks::reason_of(const Error& error) {
  if (!has_failed_elsewhere_) return error;
  // A rank that failed gives up and says why; no other rank starts another exchange. If a transport
  // does not deliver this news, the wait is short.
  constexpr std::chrono::milliseconds kMost{2000};
  const auto told = agree_within(std::min(timeout_, kMost), RankStatus::Good);
  return told || told.error().kind == ErrorKind::TimedOut ? error : told.error();
}

}  // namespace cinch::rt
