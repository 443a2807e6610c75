// Exchanges under way over NCCL, and the handling of ranks that give up or leave.

#include <algorithm>

#include "runtime/transports/nccl/nccl_rank.h"

namespace cinch::rt {
namespace {

// Messages need little of a device, and kernels of many lanes must fit on it at once.
constexpr int kBlocksOfAWay = 2;

}  // namespace

void NcclNeighbours::tell(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (heard_) heard_ = tl::unexpected<Error>(Error{ErrorKind::Cancelled, error.message});
}

Status NcclNeighbours::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

Status NcclTransport::check_memory(const Exchange& exchange) const {
  if (exchange.place == MemoryPlace::Host) return Ok{};
  const auto check = [this](std::span<const std::uint8_t> bytes) {
    return bytes.empty() ? Status(Ok{})
                         : device_->check_memory(reinterpret_cast<GpuAddress>(bytes.data()));
  };
  Status status = check(exchange.input);
  return status ? check(exchange.output) : status;
}

Result<NcclPending*> NcclTransport::take_free() {
  auto found =
      std::ranges::find_if(pending_, [](const NcclPending& each) { return !each.is_used; });
  if (found == pending_.end()) {
    found = pending_.emplace(pending_.end());
    found->index = static_cast<std::uint32_t>(found - pending_.begin());
    for (GpuEvent* event : {&found->comes_after, &found->is_copied, &found->has_run}) {
      const GpuCode code = driver().event_create(event, kGpuEventWithoutTiming);
      CINCH_TRY(driver_status(code, "making an event"));
    }
  }
  return &*found;
}

Result<NcclLane*> NcclTransport::lane_of(const Exchange& exchange) {
  const bool sends = exchange.kind == ExchangeKind::Send;
  if (!is_message(exchange.kind)) return &all_;
  const auto way =
      sends ? std::pair{own_.rank, exchange.peer} : std::pair{exchange.peer, own_.rank};
  const auto [found, is_new] = ways_.try_emplace(way, calls_, device_);
  if (is_new) {
    const NcclUniqueId& id = ids_[std::size_t{way.first} * own_.world + way.second];
    CINCH_TRY(found->second.open(id, 2, sends ? 0 : 1, kBlocksOfAWay));
  }
  return &found->second;
}

Result<Ticket> NcclTransport::start(const Exchange& exchange) {
  CINCH_TRY(check_exchange(exchange, *this));
  const GpuDevice::Scope scope(*device_);
  // The exchange with only the memory that its kind reads and writes.
  Exchange own = exchange;
  if (exchange.kind == ExchangeKind::Send) own.output = {};
  if (exchange.kind == ExchangeKind::Receive || exchange.kind == ExchangeKind::Broadcast) {
    own.input = {};
  }
  CINCH_TRY(check_memory(own));
  if (fault_) return tl::unexpected<Error>(*fault_);
  const auto taken = take_free();
  if (!taken) return failed(taken.error());
  NcclPending& pending = **taken;
  pending.is_used = true;
  pending.exchange = own;
  num_idle_ = 0;
  if (Status status = begin(pending); !status) return failed(status.error());
  num_sent_bytes_ += bytes_to_send(exchange, own_.rank, own_.world);
  return Ticket{pending.index};
}

Status NcclTransport::begin(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  const bool moves_nothing = exchange.input.empty() && exchange.output.empty();
  pending.stage = moves_nothing ? NcclPending::Stage::IsOver : NcclPending::Stage::Waits;
  pending.lane = nullptr;
  pending.seen_pass = num_passes_;
  if (moves_nothing) return Ok{};
  const auto type =
      exchange.kind == ExchangeKind::AllReduce || exchange.kind == ExchangeKind::ReduceScatter
          ? launches_.native_type(exchange)
          : NcclType::Uint8;
  pending.is_joined_here = !type;
  pending.type = type.value_or(NcclType::Uint8);
  pending.gathers_next = pending.is_joined_here && exchange.kind == ExchangeKind::AllReduce;
  pending.places_scattered = false;
  if (pending.gathers_next) cut_into_slices(exchange, own_.world, pending.slices);
  if (exchange.after != nullptr) {
    const GpuCode code =
        driver().event_record(pending.comes_after, static_cast<GpuStream>(exchange.after));
    CINCH_TRY(driver_status(code, "marking what comes before"));
  }
  pending.lane = TRY(lane_of(exchange));
  pending.lane->queue.push_back(pending.index);
  return advance(pending);
}

Result<bool> NcclTransport::has_reached(GpuEvent event) const {
  const GpuCode code = driver().event_query(event);
  if (code == kGpuNotReady) return false;
  CINCH_TRY(driver_status(code, "asking for an exchange"));
  return true;
}

// Copies of host memory can start when it is complete; for device memory the device's stream waits.
Status NcclTransport::begin_launch(NcclPending& pending) {
  if (pending.exchange.after != nullptr && pending.is_on_host()) {
    if (!TRY(has_reached(pending.comes_after))) return Ok{};
  }
  Status status = make_room(pending);
  if (status && pending.exchange.after != nullptr) {
    status =
        driver_status(driver().stream_wait_event(pending.lane->stream(), pending.comes_after, 0),
                      "waiting for a stream");
  }
  if (status) status = copies_.copy_in(pending);
  if (status) status = launches_.launch(pending);
  pending.stage = NcclPending::Stage::Launches;
  return status;
}

Status NcclTransport::end_run(NcclPending& pending) {
  if (!pending.gathers_next) {
    const bool joins =
        pending.is_joined_here && pending.exchange.kind == ExchangeKind::ReduceScatter;
    Status status = joins ? copies_.join(pending) : Status(Ok{});
    if (status) status = copies_.copy_out(pending);
    pending.stage = NcclPending::Stage::IsOver;
    return status;
  }
  pending.gathers_next = false;
  Status status = copies_.join(pending);
  if (status) status = launches_.launch_joined(pending);
  pending.stage = NcclPending::Stage::Launches;
  return status;
}

Status NcclTransport::advance(NcclPending& pending) {
  using Stage = NcclPending::Stage;
  for (Stage before = Stage::IsOver; pending.stage != before;) {
    before = pending.stage;
    if (before == Stage::IsOver) return Ok{};
    if (before == Stage::Waits && pending.lane->queue.front() != pending.index) return Ok{};
    if (before == Stage::Runs) {
      if (!TRY(has_reached(pending.has_run))) return Ok{};
      num_idle_ = 0;
      CINCH_TRY(end_run(pending));
      continue;
    }
    if (!TRY(pending.lane->is_idle())) return Ok{};
    if (before == Stage::Waits) {
      CINCH_TRY(begin_launch(pending));
      continue;
    }
    CINCH_TRY(launches_.after_launch(pending));
    pending.stage = Stage::Runs;
    if (!pending.gathers_next) pending.lane->queue.pop_front();
  }
  return Ok{};
}

// Checks for errors that NCCL has found since, in lanes with work under way.
Status NcclTransport::check_lanes() {
  for (NcclPending& each : pending_) {
    if (!each.is_used || each.stage != NcclPending::Stage::Runs) continue;
    CINCH_TRY(each.lane->is_idle());
  }
  return Ok{};
}

Status NcclTransport::advance_all() {
  constexpr std::chrono::steady_clock::duration kMoment = std::chrono::microseconds(50);
  const auto begin = std::chrono::steady_clock::now();
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (NcclPending& each : pending_) {
      if (!each.is_used || each.stage == NcclPending::Stage::IsOver) continue;
      const NcclPending::Stage before = each.stage;
      CINCH_TRY(advance(each));
      // Exchanges behind it may have been tested before.
      if (each.stage == before) continue;
      has_moved = true;
      ++num_moves_;
    }
  }
  const Status status = check_lanes();
  ++num_passes_;
  const auto end = std::chrono::steady_clock::now();
  is_new_until_ = end + std::max(kMoment, end - begin);
  return status;
}

Result<bool> NcclTransport::test(Ticket ticket) {
  if (!is_used(ticket))
    return fail(ErrorKind::InvalidArgument, "a ticket that belongs to no exchange");
  if (fault_) return tl::unexpected<Error>(*fault_);
  const GpuDevice::Scope scope(*device_);
  NcclPending& asked = pending_[ticket.index];
  // Were all exchanges advanced since the caller last asked, a moment ago? A caller that asks about
  // many in turn then advances all only once.
  const bool has_news =
      asked.stage == NcclPending::Stage::IsOver ||
      (asked.seen_pass != num_passes_ && std::chrono::steady_clock::now() < is_new_until_);
  if (!has_news) {
    if (Status status = advance_all(); !status) return failed(status.error());
  }
  asked.seen_pass = num_passes_;
  if (asked.stage == NcclPending::Stage::IsOver) {
    asked.is_used = false;
    return true;
  }
  if (Status heard = check_neighbours(); !heard) return failed(heard.error());
  return false;
}

// Exchanges that had ended for a rank before it gave up also end here, perhaps a little later.
Status NcclTransport::check_neighbours() {
  constexpr std::chrono::milliseconds kMoment{100};
  if (options_.neighbours == nullptr) return Ok{};
  Status heard = options_.neighbours->heard();
  if (heard) return heard;
  const auto now = std::chrono::steady_clock::now();
  if (!heard_at_) heard_at_ = now;
  return now - *heard_at_ < kMoment ? Status(Ok{}) : heard;
}

std::vector<std::uint32_t> NcclTransport::awaited_ranks(Ticket ticket) const {
  if (!is_used(ticket)) return {};
  const Exchange& exchange = pending_[ticket.index].exchange;
  return is_message(exchange.kind) ? std::vector{exchange.peer} : std::vector<std::uint32_t>{};
}

bool NcclTransport::is_under_way(const NcclLane* lane) const {
  return std::ranges::any_of(pending_, [lane](const NcclPending& each) {
    return each.is_used && each.stage != NcclPending::Stage::IsOver &&
           (lane == nullptr || each.lane == lane);
  });
}

void NcclTransport::end_lanes(bool is_orderly) {
  all_.end(endings_, is_orderly);
  for (auto& [way, lane] : ways_) lane.end(endings_, is_orderly);
}

void NcclTransport::abandon(const Error& why) {
  const GpuDevice::Scope scope(*device_);
  const Error given_up{why.kind, gave_up(own_.rank, why.message)};
  if (!fault_) fault_ = given_up;
  if (options_.neighbours != nullptr) options_.neighbours->tell(given_up);
  end_lanes(false);
  // Copies may still read pinned host memory.
  (void)copies_.wait();
  endings_.wait();
}

NcclTransport::~NcclTransport() {
  const GpuDevice::Scope scope(*device_);
  const bool gives_up = fault_ || is_under_way(nullptr);
  const bool is_lent_busy = all_.is_lent() && is_under_way(&all_);
  if (gives_up) abandon(fault_ ? *fault_ : Error{ErrorKind::Cancelled, "it has left"});
  if (!is_lent_busy) deregister_all();  // after giving up, only a lent communicator has any left
  if (!gives_up) end_lanes(true);
  const bool have_ended = endings_.wait();
  for (NcclPending& each : pending_) {
    for (GpuEvent event : {each.comes_after, each.is_copied, each.has_run}) {
      if (event != nullptr) driver().event_destroy(event);
    }
  }
  copies_.close();
  if (have_ended && !is_lent_busy) return;
  auto used = std::make_shared<std::deque<NcclPending>>(std::move(pending_));
  if (is_lent_busy) {
    keep_forever(std::move(used));  // kernels may use it until its owner aborts the communicator
  } else {
    endings_.keep(std::move(used));
  }
}

}  // namespace cinch::rt
