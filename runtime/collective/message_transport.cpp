#include "runtime/collective/message_transport.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/join_ranks.h"

namespace cinch::rt {
namespace {

template <typename Span>
Span part(Span all, const ByteRange& range) {
  return all.subspan(range.offset, range.size);
}

// A rank's own part may lie in its place already.
void keep(std::span<std::uint8_t> place, std::span<const std::uint8_t> own) {
  if (!own.empty() && own.data() != place.data()) {
    std::memmove(place.data(), own.data(), own.size());
  }
}

}  // namespace

void MessageTransport::send(Pending& pending, std::uint32_t to, Bytes bytes) {
  pending.legs.push_back({true, to, pending.tag, begin_send(to, pending.tag, bytes)});
  sent_bytes_ += bytes.size();
}

void MessageTransport::receive(Pending& pending, std::uint32_t from, Room room) {
  pending.legs.push_back({false, from, pending.tag, begin_receive(from, pending.tag, room)});
}

void MessageTransport::begin_gather(Pending& pending, Bytes own, std::span<const ByteRange> parts) {
  const Room to = pending.exchange.output;
  keep(part(to, parts[rank_]), own);
  visit_others(rank_, world(), [&](std::uint32_t other) {
    send(pending, other, own);
    receive(pending, other, part(to, parts[other]));
  });
}

void MessageTransport::begin_reduce(Pending& pending, std::span<const ByteRange> parts) {
  const std::size_t own_bytes = parts[rank_].size;
  pending.scratch.resize(own_bytes * world());
  visit_others(rank_, world(), [&](std::uint32_t other) {
    send(pending, other, part(pending.exchange.input, parts[other]));
    receive(pending, other, Room(pending.scratch).subspan(other * own_bytes, own_bytes));
  });
}

void MessageTransport::begin(Pending& pending) {
  const Exchange& exchange = pending.exchange;
  switch (exchange.kind) {
    case ExchangeKind::Send:
      return send(pending, exchange.peer, exchange.input);
    case ExchangeKind::Receive:
      return receive(pending, exchange.peer, exchange.output);
    case ExchangeKind::Broadcast:
      if (exchange.peer != rank_) return receive(pending, exchange.peer, exchange.output);
      return visit_others(rank_, world(),
                          [&](std::uint32_t other) { send(pending, other, exchange.output); });
    case ExchangeKind::AllGather:
      return begin_gather(pending, exchange.input, exchange.received);
    case ExchangeKind::AllToAll:
      keep(part(exchange.output, exchange.received[rank_]),
           part(exchange.input, exchange.sent[rank_]));
      return visit_others(rank_, world(), [&](std::uint32_t other) {
        send(pending, other, part(exchange.input, exchange.sent[other]));
        receive(pending, other, part(exchange.output, exchange.received[other]));
      });
    case ExchangeKind::ReduceScatter:
      return begin_reduce(pending, exchange.sent);
    case ExchangeKind::AllReduce:
      cut_into_slices(exchange, world(), pending.slices);
      pending.gathers_next = true;
      return begin_reduce(pending, pending.slices);
  }
}

Result<Ticket> MessageTransport::begin_exchange(const Exchange& exchange) {
  CINCH_TRY(check_exchange(exchange, *this));
  auto found = std::ranges::find_if(pending_, [](const Pending& each) { return !each.is_used; });
  if (found == pending_.end()) {
    Pending& added = pending_.emplace_back();
    added.legs.reserve(std::size_t{2} * world());
    added.slices.reserve(world());
    added.inputs.reserve(world());
    found = pending_.end() - 1;
  }
  found->is_used = true;
  found->is_over = found->gathers_next = false;
  found->exchange = exchange;
  found->legs.clear();
  // Messages are numbered for each direction, collectives by themselves: all ranks start both in
  // the same order. Each gets two tags, since an all-reduce has two rounds of messages.
  found->tag = exchange.kind == ExchangeKind::Send      ? 2 * num_sent_[exchange.peer]++
               : exchange.kind == ExchangeKind::Receive ? 2 * num_received_[exchange.peer]++
                                                        : kCollectiveTag | 2 * num_collectives_++;
  begin(*found);
  return Ticket{static_cast<std::uint32_t>(found - pending_.begin())};
}

Status MessageTransport::join(Pending& pending, std::span<const ByteRange> parts, Room to) const {
  const std::size_t own_bytes = parts[rank_].size;
  pending.inputs.clear();
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    pending.inputs.push_back(rank == rank_
                                 ? part(pending.exchange.input, parts[rank])
                                 : Bytes(pending.scratch).subspan(rank * own_bytes, own_bytes));
  }
  return join_arrays(pending.exchange.dtype, pending.exchange.reduction, pending.inputs, to);
}

Result<bool> MessageTransport::move_legs(Pending& pending) {
  for (std::size_t i = 0; i < pending.legs.size();) {
    if (TRY(is_over(pending.legs[i]))) {
      ++num_moves_;
      pending.legs[i] = pending.legs.back();
      pending.legs.pop_back();
    } else {
      ++i;
    }
  }
  return pending.legs.empty();
}

Result<bool> MessageTransport::advance(Pending& pending) {
  Result<bool> have_come = move_legs(pending);
  if (!have_come || !*have_come) return have_come;
  const Exchange& exchange = pending.exchange;
  if (exchange.kind == ExchangeKind::ReduceScatter) {
    CINCH_TRY(join(pending, exchange.sent, exchange.output));
  }
  if (!pending.gathers_next) return true;
  pending.gathers_next = false;
  const Room own = part(exchange.output, pending.slices[rank_]);
  CINCH_TRY(join(pending, pending.slices, own));
  ++pending.tag;
  begin_gather(pending, own, pending.slices);
  return move_legs(pending);
}

Status MessageTransport::advance_all() {
  Status first = Ok{};
  for (Pending& each : pending_) {
    if (!each.is_used || each.is_over) continue;
    const Result<bool> has_ended = advance(each);
    each.is_over = has_ended && *has_ended;
    if (first && !has_ended) first = tl::unexpected<Error>(has_ended.error());
  }
  return first;
}

Result<bool> MessageTransport::take_end(Ticket ticket, const Status& advanced) {
  if (!is_under_way(ticket))
    return fail(ErrorKind::InvalidArgument, "a ticket that belongs to no exchange");
  Pending& asked = pending_[ticket.index];
  if (!asked.is_over && !advanced) return tl::unexpected<Error>(advanced.error());
  if (asked.is_over) asked.is_used = false;
  return asked.is_over;
}

bool MessageTransport::is_any_under_way() const {
  return std::ranges::any_of(
      pending_, [](const Pending& each) { return each.is_used && !each.legs.empty(); });
}

std::vector<std::uint32_t> MessageTransport::awaited_ranks(Ticket ticket) const {
  std::vector<std::uint32_t> ranks;
  if (!is_under_way(ticket)) return ranks;
  for (const Leg& leg : pending_[ticket.index].legs) ranks.push_back(leg.peer);
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

}  // namespace cinch::rt
