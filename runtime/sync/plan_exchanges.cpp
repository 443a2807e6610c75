// A plan's exchanges: begins them in order, tests those under way, and notices what is late.
#include <fmt/format.h>

#include "runtime/core/log.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/sync/plan_runner.h"

namespace cinch::rt {
namespace {

// The part of the wire that contains all ranges, which become relative to it: no more than that is
// staged.
std::span<std::uint8_t> narrow(std::span<std::uint8_t> wire, std::vector<ByteRange>& ranges) {
  std::uint64_t begin = wire.size(), end = 0;
  for (const ByteRange& range : ranges) {
    if (range.size == 0) continue;
    begin = std::min(begin, range.offset);
    end = std::max(end, range.offset + range.size);
  }
  begin = std::min(begin, end);
  for (ByteRange& range : ranges) range.offset = range.size == 0 ? 0 : range.offset - begin;
  return wire.subspan(begin, end - begin);
}

}  // namespace

bool PlanRunner::is_next_ready() const {
  return num_started_ < exchanges_.size() && missing_[exchanges_[num_started_]] == 0;
}

Result<Exchange> PlanRunner::exchange_of(std::uint32_t index) {
  const Task& of = task(index);
  Exchange exchange{of.exchange, of.peer, of.reduction, of.dtype};
  const auto wire = TRY(parts_.compute.wire_of(of, parts_.memory));
  exchange.place = wire.place;
  exchange.after = wire.after;
  const auto range = [&](std::uint32_t slot) -> Result<ByteRange> {
    std::uint64_t bytes = own_.slots[slot].capacity;
    if (of.is_sized) {
      bytes = TRY(parts_.memory.used_bytes(slot));
    }
    return ByteRange{own_.slots[slot].offset, bytes};
  };
  for (std::size_t i = 0; i < of.reads.size(); ++i) {
    sent_[index][i] = TRY(range(of.reads[i]));
  }
  for (std::size_t i = 0; i < of.writes.size(); ++i) {
    received_[index][i] = TRY(range(of.writes[i]));
  }
  exchange.input = narrow(wire.bytes, sent_[index]);
  exchange.output = narrow(wire.bytes, received_[index]);
  exchange.sent = sent_[index];
  exchange.received = received_[index];
  return exchange;
}

bool PlanRunner::start_one(std::uint32_t index) {
  times_.tasks[index].begin = seconds_now();
  Status status = Ok{};
  if (task(index).kind == TaskKind::Synchronise) {
    ranks_.begin([this, index](const Error& error) { return named(index, error); },
                 [this, index] { return task_of_step(index); });
    const std::uint64_t before = parts_.transport.sent_bytes();
    status =
        work(index, [&] { return parts_.compute.synchronise(task(index), parts_.memory, ranks_); });
    times_.tasks[index].sent_bytes = parts_.transport.sent_bytes() - before;
    if (!status) status = tl::unexpected<Error>(ranks_.reason_of(status.error()));
    const std::lock_guard lock(mutex_);
    if (status) {
      end_task(index);
      return true;
    }
    note_failure(index, status.error());
    return false;
  }
  const auto exchange = exchange_of(index);
  const auto ticket = exchange ? parts_.transport.start(*exchange)
                               : Result<Ticket>(tl::unexpected<Error>(exchange.error()));
  const std::lock_guard lock(mutex_);
  if (!ticket) {
    note_failure(index, ticket.error());
    return false;
  }
  const std::uint32_t rank = parts_.transport.rank(), world = parts_.transport.world();
  times_.tasks[index].sent_bytes = bytes_to_send(*exchange, rank, world);
  last_move_ = Clock::now();
  flights_.push_back({index, *ticket});
  return true;
}

std::optional<std::uint32_t> PlanRunner::next_exchange() {
  const std::lock_guard lock(mutex_);
  if (failure_ || num_started_ == exchanges_.size()) return std::nullopt;
  const std::uint32_t index = exchanges_[num_started_];
  if (missing_[index] > 0) return std::nullopt;
  ++num_started_;
  return index;
}

bool PlanRunner::test_flights() {
  bool has_moved = false;
  for (std::size_t i = 0; i < flights_.size();) {
    const Result<bool> is_over = parts_.transport.test(flights_[i].ticket);
    if (is_over && !*is_over) {
      ++i;
      continue;
    }
    const std::uint32_t index = flights_[i].task;
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
    const std::lock_guard lock(mutex_);
    has_moved = true;
    if (!is_over) {
      Error error = is_over.error();
      // The lengths are those that ranks told one another.
      if (error.kind == ErrorKind::Internal && task(index).is_sized) {
        error.kind = ErrorKind::CorruptPayload;
      }
      note_failure(index, error);
      return true;
    }
    end_task(index);
  }
  return has_moved;
}

// The limit is a little shorter than the others' wait for this rank, so that they learn which
// tensor is missing.
void PlanRunner::check_readiness() {
  const auto most = parts_.timeout - parts_.timeout / 8;
  const bool computes = num_computing_ > 0 || !computes_.ready.empty() || !on_cpus_.ready.empty();
  if (failure_ || computes || Clock::now() - last_move_ <= most) return;
  const auto unready = std::ranges::find(is_ready_, false);
  if (unready == is_ready_.end()) return;
  const auto tensor = static_cast<std::size_t>(unready - is_ready_.begin());
  failure_ =
      Error{ErrorKind::TimedOut, fmt::format("tensor {} has not become ready for {} ms",
                                             parts_.plan.tensors[tensor].name, most.count())};
  parts_.cancelled = true;
  changed_.notify_all();
}

void PlanRunner::wait() {
  // If nobody can wake the transport, the end of a computation is noticed a little late while
  // exchanges are under way.
  constexpr std::chrono::microseconds kLook{100};
  constexpr std::chrono::milliseconds kSleep{2}, kRest{50};
  if (flights_.empty()) {
    std::unique_lock lock(mutex_);
    if (num_left_ > 0 && !failure_ && !is_closing_ && !is_next_ready()) {
      changed_.wait_for(lock, kRest);
    }
    check_readiness();
    return;
  }
  parts_.transport.pause(can_be_woken_ ? kSleep : kLook);
  std::optional<std::string> line;
  {
    const std::lock_guard lock(mutex_);
    line = check_flights();
  }
  if (line) tell_log(*line);
}

std::optional<std::string> PlanRunner::check_flights() {
  const std::uint64_t before = std::exchange(num_moves_, parts_.transport.num_moves());
  if (num_moves_ != before) last_move_ = Clock::now();
  check_readiness();
  if (num_computing_ > 0 || failure_) return std::nullopt;
  const Clock::duration standstill = Clock::now() - last_move_;
  const auto& [index, ticket] = flights_.front();
  if (standstill <= parts_.timeout) {
    if (!log_.is_due(standstill)) return std::nullopt;
    return log_.line(parts_.transport, ticket, standstill, task_of_step(index));
  }
  awaited_ = parts_.transport.awaited_ranks(ticket);
  note_failure(index, timed_out(parts_.transport, ticket, parts_.timeout));
  return std::nullopt;
}

Status PlanRunner::issue(const Prologue& prologue) {
  // Transports may join values on this thread.
  const DefaultFloatEnvironment environment;
  if (Status status = prologue(); !status) {
    parts_.transport.abandon(status.error());
    const std::lock_guard lock(mutex_);
    failure_ = status.error();
    changed_.notify_all();
    return status;
  }
  {
    const std::lock_guard lock(mutex_);
    is_running_ = true;
    last_move_ = Clock::now();
  }
  changed_.notify_all();
  const auto is_over = [this] {
    const std::lock_guard lock(mutex_);
    return failure_ || num_left_ == 0 || is_closing_;
  };
  while (!is_over()) {
    bool has_started = false;
    for (auto index = next_exchange(); index; index = next_exchange()) {
      has_started = true;
      if (!start_one(*index)) break;
    }
    const bool has_ended = test_flights();
    if (!has_started && !has_ended) wait();
  }
  return end_issuing();
}

Status PlanRunner::end_issuing() {
  std::unique_lock lock(mutex_);
  is_running_ = false;
  if (!failure_ && num_left_ > 0) failure_ = Error{ErrorKind::Cancelled, "the session is closed"};
  if (failure_) failure_ = abandon_late(parts_.transport, *failure_, awaited_);
  changed_.wait(lock, [this] { return num_computing_ == 0; });
  times_.end = seconds_now();
  if (failure_) return tl::unexpected<Error>(*failure_);
  return Ok{};
}

Status PlanRunner::run(const Prologue& prologue) {
  return issue(prologue);
}

void PlanRunner::start(Prologue prologue) {
  {
    const std::lock_guard lock(mutex_);
    prologue_ = std::move(prologue);
    has_work_ = times_.is_in_parts = true;
  }
  if (!network_thread_.joinable()) network_thread_ = std::thread([this] { network_loop(); });
  changed_.notify_all();
}

Status PlanRunner::join() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_issued_; });
  return issued_;
}

void PlanRunner::network_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_closing_ || has_work_; });
    if (!has_work_) return;
    has_work_ = false;
    lock.unlock();
    Status status = issue(prologue_);
    lock.lock();
    issued_ = std::move(status);
    has_issued_ = true;
    changed_.notify_all();
  }
}

}  // namespace cinch::rt
