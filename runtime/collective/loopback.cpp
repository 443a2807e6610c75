// One rank of a loopback world: every exchange is messages to and from the others, and what is done
// with them when they have come.
#include "runtime/collective/loopback.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <vector>

#include "runtime/collective/join_ranks.h"
#include "runtime/collective/loopback_switch.h"

namespace cinch::rt {

class LoopbackTransport : public Transport {
 public:
  LoopbackTransport(LoopbackWorld::Switch& ways, std::uint32_t rank)
      : switch_(ways), rank_(rank), num_sent_(ways.world()), num_received_(ways.world()) {}
  ~LoopbackTransport() override { switch_.leave(rank_); }

  std::string_view name() const override { return "loopback"; }
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t world() const override { return switch_.world(); }
  bool sums_in_rank_order() const override { return true; }
  std::uint64_t sent_bytes() const override { return sent_bytes_; }
  std::uint64_t num_moves() const override { return num_moves_; }

  Result<Ticket> start(const Exchange& exchange) override;
  Result<bool> test(Ticket ticket) override;
  std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const override;
  void pause(std::chrono::microseconds most) override { switch_.pause(rank_, seen_, most); }
  bool wake() override { return switch_.wake(rank_), true; }
  void abandon(const Error& why) override { switch_.abandon(rank_, why); }

 private:
  struct Leg {
    bool is_sent = false;
    std::uint32_t peer = 0;
    std::uint64_t tag = 0;
  };
  // An exchange under way; its vectors keep their memory for the next one.
  struct Pending {
    bool is_used = false, is_over = false, gathers_next = false;
    Exchange exchange;
    std::uint64_t tag = 0;  // of its messages
    std::vector<Leg> legs;  // those that have not ended
    std::vector<ByteRange> slices;
    std::vector<std::uint8_t> scratch;
    std::vector<std::span<const std::uint8_t>> inputs;
  };

  using Bytes = std::span<const std::uint8_t>;
  using Room = std::span<std::uint8_t>;
  static Bytes part(Bytes all, const ByteRange& range) {
    return all.subspan(range.offset, range.size);
  }
  static Room part(Room all, const ByteRange& range) {
    return all.subspan(range.offset, range.size);
  }

  void send(Pending& pending, std::uint32_t to, Bytes bytes);
  void receive(Pending& pending, std::uint32_t from, Room room);
  /// The ranks after this one, in a circle: so that no link has all messages at once.
  template <typename Visit>
  void visit_others(const Visit& visit) const;
  std::uint64_t next_tag(const Exchange& exchange);
  Pending& add_pending();
  void begin(Pending& pending);
  void begin_gather(Pending& pending, Bytes own, std::span<const ByteRange> parts);
  void begin_reduce(Pending& pending, std::span<const ByteRange> parts);
  void cut_into_slices(Pending& pending) const;
  Status join(Pending& pending, std::span<const ByteRange> parts, Room to) const;
  /// True where nothing is left to do.
  Result<bool> advance(Pending& pending);
  Result<bool> move_legs(Pending& pending);
  Status advance_all();

  LoopbackWorld::Switch& switch_;
  std::uint32_t rank_;
  std::uint64_t sent_bytes_ = 0, seen_ = 0, num_moves_ = 0;
  bool has_news_ = false;  // something was begun since all were looked at
  LinkClock::time_point looked_;
  std::uint64_t num_collectives_ = 0;
  std::vector<std::uint64_t> num_sent_, num_received_;  // messages, by rank
  std::deque<Pending> pending_;                         // by ticket
};

void LoopbackTransport::send(Pending& pending, std::uint32_t to, Bytes bytes) {
  switch_.send(rank_, to, pending.tag, bytes);
  pending.legs.push_back({true, to, pending.tag});
  sent_bytes_ += bytes.size();
}

void LoopbackTransport::receive(Pending& pending, std::uint32_t from, Room room) {
  switch_.receive(from, rank_, pending.tag, room);
  pending.legs.push_back({false, from, pending.tag});
}

template <typename Visit>
void LoopbackTransport::visit_others(const Visit& visit) const {
  for (std::uint32_t i = 1; i < world(); ++i) visit((rank_ + i) % world());
}

void LoopbackTransport::begin_gather(Pending& pending, Bytes own,
                                     std::span<const ByteRange> parts) {
  const Room to = pending.exchange.output;
  const Room place = part(to, parts[rank_]);
  if (!own.empty() && own.data() != place.data()) {
    std::memmove(place.data(), own.data(), own.size());
  }
  visit_others([&](std::uint32_t other) {
    send(pending, other, own);
    receive(pending, other, part(to, parts[other]));
  });
}

void LoopbackTransport::begin_reduce(Pending& pending, std::span<const ByteRange> parts) {
  const std::size_t own_bytes = parts[rank_].size;
  pending.scratch.resize(own_bytes * world());
  visit_others([&](std::uint32_t other) {
    send(pending, other, part(pending.exchange.input, parts[other]));
    receive(pending, other, Room(pending.scratch).subspan(other * own_bytes, own_bytes));
  });
}

void LoopbackTransport::cut_into_slices(Pending& pending) const {
  const auto width = static_cast<std::uint64_t>(element_bytes(pending.exchange.dtype));
  const std::uint64_t elements = pending.exchange.input.size() / width;
  pending.slices.resize(world());
  for (std::uint64_t rank = 0; rank < world(); ++rank) {
    const std::uint64_t begin = elements * rank / world(), end = elements * (rank + 1) / world();
    pending.slices[rank] = {begin * width, (end - begin) * width};
  }
}

void LoopbackTransport::begin(Pending& pending) {
  const Exchange& exchange = pending.exchange;
  switch (exchange.kind) {
    case ExchangeKind::Send:
      return send(pending, exchange.peer, exchange.input);
    case ExchangeKind::Receive:
      return receive(pending, exchange.peer, exchange.output);
    case ExchangeKind::Broadcast:
      if (exchange.peer != rank_) return receive(pending, exchange.peer, exchange.output);
      return visit_others([&](std::uint32_t other) { send(pending, other, exchange.output); });
    case ExchangeKind::AllGather:
      return begin_gather(pending, exchange.input, exchange.received);
    case ExchangeKind::AllToAll: {
      const Bytes own = part(exchange.input, exchange.sent[rank_]);
      const Room place = part(exchange.output, exchange.received[rank_]);
      if (!own.empty() && own.data() != place.data()) {
        std::memmove(place.data(), own.data(), own.size());
      }
      return visit_others([&](std::uint32_t other) {
        send(pending, other, part(exchange.input, exchange.sent[other]));
        receive(pending, other, part(exchange.output, exchange.received[other]));
      });
    }
    case ExchangeKind::ReduceScatter:
      return begin_reduce(pending, exchange.sent);
    case ExchangeKind::AllReduce:
      cut_into_slices(pending);
      pending.gathers_next = true;
      return begin_reduce(pending, pending.slices);
  }
}

// Messages are counted by way, collectives on their own: ranks start both in the same order. Two
// tags for each, since an all-reduce has two rounds of messages.
std::uint64_t LoopbackTransport::next_tag(const Exchange& exchange) {
  constexpr std::uint64_t kCollective = std::uint64_t{1} << 63;
  if (exchange.kind == ExchangeKind::Send) return 2 * num_sent_[exchange.peer]++;
  if (exchange.kind == ExchangeKind::Receive) return 2 * num_received_[exchange.peer]++;
  return kCollective | 2 * num_collectives_++;
}

LoopbackTransport::Pending& LoopbackTransport::add_pending() {
  Pending& added = pending_.emplace_back();
  added.legs.reserve(std::size_t{2} * world());
  added.slices.reserve(world());
  added.inputs.reserve(world());
  return added;
}

Result<Ticket> LoopbackTransport::start(const Exchange& exchange) {
  if (Status status = check_exchange(exchange, *this); !status) {
    return tl::unexpected<Error>(status.error());
  }
  auto found = std::ranges::find_if(pending_, [](const Pending& each) { return !each.is_used; });
  if (found == pending_.end()) {
    add_pending();
    found = pending_.end() - 1;
  }
  found->is_used = true;
  found->is_over = found->gathers_next = false;
  found->exchange = exchange;
  found->legs.clear();
  found->tag = next_tag(exchange);
  begin(*found);
  has_news_ = true;
  return Ticket{static_cast<std::uint32_t>(found - pending_.begin())};
}

Status LoopbackTransport::join(Pending& pending, std::span<const ByteRange> parts, Room to) const {
  const std::size_t own_bytes = parts[rank_].size;
  pending.inputs.clear();
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    pending.inputs.push_back(rank == rank_
                                 ? part(pending.exchange.input, parts[rank])
                                 : Bytes(pending.scratch).subspan(rank * own_bytes, own_bytes));
  }
  return join_arrays(pending.exchange.dtype, pending.exchange.reduction, pending.inputs, to);
}

Result<bool> LoopbackTransport::move_legs(Pending& pending) {
  for (std::size_t i = 0; i < pending.legs.size();) {
    const Leg& leg = pending.legs[i];
    const Result<bool> is_over = leg.is_sent ? switch_.is_taken(rank_, leg.peer, leg.tag)
                                             : switch_.take(leg.peer, rank_, leg.tag);
    if (!is_over) return is_over;
    if (*is_over) {
      ++num_moves_;
      pending.legs[i] = pending.legs.back();
      pending.legs.pop_back();
    } else {
      ++i;
    }
  }
  return pending.legs.empty();
}

Result<bool> LoopbackTransport::advance(Pending& pending) {
  Result<bool> have_come = move_legs(pending);
  if (!have_come || !*have_come) return have_come;
  const Exchange& exchange = pending.exchange;
  if (exchange.kind == ExchangeKind::ReduceScatter) {
    const Status status = join(pending, exchange.sent, exchange.output);
    if (!status) return tl::unexpected<Error>(status.error());
  }
  if (!pending.gathers_next) return true;
  pending.gathers_next = false;
  const Room own = part(exchange.output, pending.slices[rank_]);
  if (Status status = join(pending, pending.slices, own); !status) {
    return tl::unexpected<Error>(status.error());
  }
  ++pending.tag;
  begin_gather(pending, own, pending.slices);
  return move_legs(pending);
}

// Once for each event, however many exchanges are asked about; where links have a shape, messages
// arrive without one.
Status LoopbackTransport::advance_all() {
  constexpr std::chrono::microseconds kLook{20};
  const std::uint64_t events = switch_.num_events(rank_);
  const LinkClock::time_point now = LinkClock::now();
  const bool is_due = switch_.is_shaped() && now - looked_ >= kLook;
  if (events == seen_ && !has_news_ && !is_due) return Ok{};
  seen_ = events;
  looked_ = now;
  has_news_ = true;  // until all have been looked at
  for (Pending& each : pending_) {
    if (!each.is_used || each.is_over) continue;
    const Result<bool> is_over = advance(each);
    if (!is_over) return tl::unexpected<Error>(is_over.error());
    each.is_over = *is_over;
  }
  has_news_ = false;
  return Ok{};
}

Result<bool> LoopbackTransport::test(Ticket ticket) {
  if (ticket.index >= pending_.size() || !pending_[ticket.index].is_used) {
    return fail(ErrorKind::InvalidArgument, "a ticket of no exchange");
  }
  if (Status status = advance_all(); !status) return tl::unexpected<Error>(status.error());
  Pending& asked = pending_[ticket.index];
  if (asked.is_over) asked.is_used = false;
  return asked.is_over;
}

std::vector<std::uint32_t> LoopbackTransport::awaited_ranks(Ticket ticket) const {
  std::vector<std::uint32_t> ranks;
  if (ticket.index >= pending_.size() || !pending_[ticket.index].is_used) return ranks;
  for (const Leg& leg : pending_[ticket.index].legs) ranks.push_back(leg.peer);
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

LoopbackWorld::LoopbackWorld(std::uint32_t world, LinkShape shape)
    : switch_(std::make_unique<Switch>(world, shape)) {}
LoopbackWorld::~LoopbackWorld() = default;

std::unique_ptr<Transport> LoopbackWorld::transport(std::uint32_t rank) {
  return std::make_unique<LoopbackTransport>(*switch_, rank);
}

}  // namespace cinch::rt
