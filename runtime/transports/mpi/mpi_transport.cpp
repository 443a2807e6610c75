// Exchanges under way over MPI, and the handling of ranks that give up or leave.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "runtime/transports/mpi/mpi_rank.h"

namespace cinch::rt {
Error mpi_error(const cinch_mpi_calls& calls, std::int32_t code) {
  std::array<char, 512> text{};
  calls.error_text(code, text.data(), text.size());
  const bool is_late =
      code == CINCH_MPI_LATE || code == CINCH_MPI_NO_START || code == CINCH_MPI_NO_END;
  return {is_late ? ErrorKind::TimedOut : ErrorKind::Device, fmt::format("MPI: {}", text.data()),
          code};
}

namespace {

// An error that says what was waited for, and how long.
Error late_error(const cinch_mpi_calls& calls, std::int32_t code,
                 std::chrono::milliseconds timeout) {
  Error error = mpi_error(calls, code);
  if (error.kind == ErrorKind::TimedOut) {
    error.message += fmt::format(" within {} ms", timeout.count());
  }
  return error;
}

// The module's limit is 24 days.
std::int32_t to_whole_ms(std::chrono::milliseconds timeout) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::min<std::int64_t>(timeout.count(), kMost));
}

}  // namespace

Status MpiTransport::library_status(std::int32_t code) const {
  return code == 0 ? Status(Ok{}) : tl::unexpected<Error>(mpi_error(calls_, code));
}

Status MpiTransport::listen() {
  for (std::uint32_t from = 0; from < world_; ++from) {
    if (from == rank_) continue;
    const std::int32_t code =
        calls_.receive(mpi_, CINCH_MPI_NOTICES, &memory_->heard[from], sizeof(MpiNotice),
                       static_cast<std::int32_t>(from), 0, token_of(kNoticeToken, from));
    if (code != 0) return library_status(code);
  }
  return Ok{};
}

MpiPending& MpiTransport::take_free() {
  auto& all = memory_->pending;
  auto found = std::ranges::find_if(all, [](const MpiPending& each) { return !each.is_used; });
  if (found == all.end()) found = all.emplace(all.end());
  found->index = static_cast<std::uint32_t>(found - all.begin());
  found->is_used = true;
  found->gathers_next = false;
  found->device = nullptr;
  found->staging = nullptr;
  found->legs.clear();
  found->unsent.clear();
  found->num_left = 0;
  return *found;
}

Result<Ticket> MpiTransport::start(const Exchange& exchange) {
  CINCH_TRY(check_exchange(exchange, *this));
  const auto device = TRY(device_of(exchange));
  if (fault_) return tl::unexpected<Error>(*fault_);
  MpiPending& pending = take_free();
  pending.exchange = exchange;
  number(pending);
  num_idle_ = 0;
  Status status = Ok{};
  if (exchange.place == MemoryPlace::Device) {
    pending.device = device;
    const MpiDevice::Turn turn(*pending.device);
    status = begin(pending);
    const bool gives = exchange.kind != ExchangeKind::Receive;
    pending.stage = gives ? MpiPending::Stage::TakesInput : MpiPending::Stage::Moves;
    if (status && gives) status = pending.device->end(MpiDevice::Way::In, *pending.staging);
  } else {
    if (device != nullptr) {
      const MpiDevice::Turn turn(*device);
      status = device->wait_for(static_cast<GpuStream>(exchange.after));
    }
    pending.stage = MpiPending::Stage::Moves;
    if (status) status = begin(pending);
    if (status) status = send_unsent(pending);
  }
  if (!status) return failed(status.error());
  return Ticket{pending.index};
}

Result<MpiDevice*> MpiTransport::device_of(const Exchange& exchange) const {
  const bool is_on_device = exchange.place == MemoryPlace::Device;
  MpiDevice* none = nullptr;
  if (!is_on_device && exchange.after == nullptr) return none;
  const auto has_it = [&](const std::unique_ptr<MpiDevice>& device) {
    return !is_on_device ||
           ((exchange.kind == ExchangeKind::Receive || device->has(exchange.input)) &&
            (exchange.kind == ExchangeKind::Send || device->has(exchange.output)));
  };
  const auto found = std::ranges::find_if(devices_, has_it);
  if (found != devices_.end()) return found->get();
  return fail(ErrorKind::InvalidArgument,
              fmt::format("{}: memory of a device that was not lent to the transport mpi",
                          exchange_kind_name(exchange.kind)));
}

bool MpiTransport::takes_device_memory(ExchangeKind kind) const {
  return is_cuda_aware_ &&
         (is_message(kind) || kind == ExchangeKind::AllGather || kind == ExchangeKind::AllToAll);
}

bool MpiTransport::lend(const LentMemory& memory) {
  if (!is_cuda_aware_ || memory.bytes.empty()) return false;
  const auto found = std::ranges::find_if(
      devices_, [&](const auto& each) { return &each->device() == memory.device.get(); });
  if (found != devices_.end()) {
    (*found)->add(memory.bytes);
    return true;
  }
  auto opened = MpiDevice::open(memory);
  if (opened) devices_.push_back(std::move(*opened));
  return opened.has_value();
}

void MpiTransport::take_back(std::span<std::uint8_t> device_memory) {
  const auto found =
      std::ranges::find_if(devices_, [&](const auto& each) { return each->remove(device_memory); });
  if (found == devices_.end() || !(*found)->is_idle()) return;
  for (MpiPending& pending : memory_->pending) {
    if (pending.device != found->get()) continue;
    if (!fault_) failed({ErrorKind::Internal, "a device's memory was taken from an exchange"});
    // Staging that MPI has not finished stays in use.
    if (pending.num_left == 0 && pending.staging != nullptr) pending.staging->is_used = false;
    pending.device = nullptr;
    pending.staging = nullptr;
  }
  devices_.erase(found);
}

// Exchanges that the other rank had ended before end here, too; the next test of a later one is an
// error.
void MpiTransport::hear(std::uint32_t from) {
  MpiNotice& notice = memory_->heard[from];
  notice.text.back() = '\0';
  has_gone_[from] = true;
  if (notice.kind == MpiNotice::Kind::GaveUp) is_known_ = true;
}

Status MpiTransport::end_leg(const cinch_mpi_end& end) {
  const auto index = static_cast<std::uint32_t>(end.token >> 32);
  const auto which = static_cast<std::uint32_t>(end.token);
  if (index == kNoticeToken && which >= world_) {  // one that this rank sent
    --num_untaken_;
    return Ok{};
  }
  if (index == kNoticeToken) {
    if (end.error == 0) hear(which);
    return library_status(end.error);
  }
  MpiPending& pending = memory_->pending[index];
  MpiLeg& leg = pending.legs[which];
  leg.is_over = true;
  --pending.num_left;
  const bool is_too_long = end.error == CINCH_MPI_TOO_LONG;
  if (end.error != 0 && !is_too_long) return library_status(end.error);
  if (is_too_long && leg.kind == MpiLeg::Kind::Collective) {
    return fail(
        ErrorKind::Internal,
        fmt::format("other ranks exchange more bytes than rank {}, which has {}", rank_, leg.size));
  }
  if (leg.kind != MpiLeg::Kind::Receive || (!is_too_long && end.bytes == leg.size)) return Ok{};
  return fail(ErrorKind::Internal,
              fmt::format("rank {} sends {} bytes where rank {} expects {}", leg.peer,
                          is_too_long ? "more" : fmt::to_string(end.bytes), rank_, leg.size));
}

Status MpiTransport::progress() {
  const cinch_mpi_end* ends = nullptr;
  std::size_t num_ends = 0;
  // MPI copies memory of the device that is current on the thread.
  std::optional<GpuDevice::Scope> scope;
  if (!devices_.empty()) scope.emplace(devices_.front()->device());
  if (const std::int32_t code = calls_.progress(mpi_, &ends, &num_ends); code != 0) {
    return library_status(code);
  }
  // Advances all of them, so that none is forgotten; keeps the first error.
  Status first = Ok{};
  for (const cinch_mpi_end& end : std::span(ends, num_ends)) {
    const Status status = end_leg(end);
    if (first && !status) first = status;
  }
  num_moves_ += num_ends;
  if (num_ends > 0) num_idle_ = 0;
  return first;
}

// Is the exchange useless, because a gone rank has not done its part? A rank that gave up also ends
// messages between others, which may have heard of it.
bool MpiTransport::is_in_vain(const MpiPending& pending, std::uint32_t gone) const {
  const MpiNotice& notice = memory_->heard[gone];
  const Exchange& exchange = pending.exchange;
  const bool is_single = is_message(exchange.kind);
  if (is_single && exchange.peer != gone) return notice.kind == MpiNotice::Kind::GaveUp;
  const std::uint64_t ended = !is_single                            ? notice.num_collectives
                              : exchange.kind == ExchangeKind::Send ? notice.num_received
                                                                    : notice.num_sent;
  return pending.number >= ended;
}

// The reason of a rank that gave up takes precedence: others may have left because of it.
Status MpiTransport::check_gone(const MpiPending& pending) const {
  for (const auto kind : {MpiNotice::Kind::GaveUp, MpiNotice::Kind::Left}) {
    for (std::uint32_t other = 0; other < world_; ++other) {
      const MpiNotice& notice = memory_->heard[other];
      if (!has_gone_[other] || notice.kind != kind || !is_in_vain(pending, other)) continue;
      return fail(ErrorKind::Cancelled, kind == MpiNotice::Kind::Left
                                            ? fmt::format("rank {} has left", other)
                                            : gave_up(other, notice.text.data()));
    }
  }
  return Ok{};
}

Result<bool> MpiTransport::test(Ticket ticket) {
  if (!is_used(ticket))
    return fail(ErrorKind::InvalidArgument, "a ticket that belongs to no exchange");
  if (fault_) return tl::unexpected<Error>(*fault_);
  if (Status status = progress(); !status) return failed(status.error());
  for (MpiPending& each : memory_->pending) {
    if (!each.is_used || each.stage == MpiPending::Stage::IsOver) continue;
    if (Status status = advance(each); !status) return failed(status.error());
  }
  MpiPending& asked = memory_->pending[ticket.index];
  if (Status status = check_gone(asked); !status) return failed(status.error());
  if (asked.stage != MpiPending::Stage::IsOver) return false;
  asked.is_used = false;
  return true;
}

std::vector<std::uint32_t> MpiTransport::awaited_ranks(Ticket ticket) const {
  std::vector<std::uint32_t> ranks;
  if (!is_used(ticket)) return ranks;
  for (const MpiLeg& leg : memory_->pending[ticket.index].legs) {
    if (!leg.is_over && leg.kind != MpiLeg::Kind::Collective) ranks.push_back(leg.peer);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

MpiNotice MpiTransport::notice_to(std::uint32_t other, MpiNotice::Kind kind) const {
  MpiNotice notice{kind, num_collectives_, num_sent_[other], num_received_[other]};
  for (const MpiPending& each : memory_->pending) {
    if (!each.is_used || each.stage == MpiPending::Stage::IsOver) continue;
    const ExchangeKind of = each.exchange.kind;
    if (is_message(of) && each.exchange.peer != other) continue;
    std::uint64_t& ended = !is_message(of)            ? notice.num_collectives
                           : of == ExchangeKind::Send ? notice.num_sent
                                                      : notice.num_received;
    ended = std::min(ended, each.number);
  }
  return notice;
}

void MpiTransport::tell_all(MpiNotice::Kind kind, std::string_view why,
                            std::chrono::milliseconds patience) {
  constexpr std::chrono::microseconds kNap{20};
  visit_others(rank_, world_, [&](std::uint32_t other) {
    if (has_gone_[other]) return;
    MpiNotice& notice = memory_->told[other];
    notice = notice_to(other, kind);
    notice.set_text(why);
    const std::int32_t code =
        calls_.send(mpi_, CINCH_MPI_NOTICES, &notice, sizeof notice,
                    static_cast<std::int32_t>(other), 0, token_of(kNoticeToken, world_ + other));
    if (code == 0) ++num_untaken_;
  });
  const auto end = std::chrono::steady_clock::now() + patience;
  while (num_untaken_ > 0 && std::chrono::steady_clock::now() < end) {
    // Messages from others no longer matter.
    if (Status status = progress(); !status) failed(status.error());
    std::this_thread::sleep_for(kNap);
  }
}

void MpiTransport::abandon(const Error& why) {
  constexpr std::chrono::milliseconds kPatience{2000};
  if (!fault_) fault_ = Error{why.kind, gave_up(rank_, why.message)};
  if (!std::exchange(is_known_, true)) tell_all(MpiNotice::Kind::GaveUp, why.message, kPatience);
  // Copies use the caller's memory.
  for (const auto& device : devices_) {
    const MpiDevice::Turn turn(*device);
    (void)device->wait();
  }
}

bool MpiTransport::is_under_way() const {
  return std::ranges::any_of(memory_->pending, [](const MpiPending& each) {
    return each.num_left > 0 || !each.unsent.empty();
  });
}

MpiTransport::~MpiTransport() {
  constexpr std::chrono::milliseconds kPatience{20};
  if (fault_) {
    abandon(*fault_);
  } else if (is_under_way()) {
    abandon({ErrorKind::Cancelled, "it has left"});
  } else {
    tell_all(MpiNotice::Kind::Left, {}, kPatience);
  }
  calls_.close(mpi_, fault_ ? 1 : 0);
  if (!is_under_way()) memory_->pending.clear();
  keep_forever(std::move(memory_));  // operations and notices may still use it
}

Result<std::unique_ptr<Transport>> open_mpi_transport(const MpiOptions& options) {
  const cinch_mpi_calls& calls = *TRY(mpi_library());
  cinch_mpi_world* mpi = nullptr;
  std::int32_t rank = 0, world = 0;
  const std::int32_t code = calls.open(to_whole_ms(options.timeout), &mpi, &rank, &world);
  if (code != 0) return tl::unexpected<Error>(late_error(calls, code, options.timeout));
  auto transport = std::make_unique<MpiTransport>(calls, mpi, static_cast<std::uint32_t>(rank),
                                                  static_cast<std::uint32_t>(world), options);
  CINCH_TRY(transport->listen());
  return transport;
}

Status leave_mpi(std::chrono::milliseconds timeout) {
  const cinch_mpi_calls& calls = *TRY(mpi_library());
  const std::int32_t code = calls.leave(to_whole_ms(timeout));
  if (code != 0) return tl::unexpected<Error>(late_error(calls, code, timeout));
  return Ok{};
}

}  // namespace cinch::rt
