// Bodies of transport_ranks.h.
#include "runtime/sync/transport_ranks.h"

#include <algorithm>

namespace cinch::rt {

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
  const std::uint64_t part = gathers ? call.input.size() : call.input.size() / world;
  for (std::uint32_t rank = 0; rank < world; ++rank) parts_[rank] = {rank * part, part};
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
  const auto received = received_parts(call, offers, transport_.rank());
  CINCH_TRY(received);
  Exchange exchange{exchange_kind_of(call.collective.kind)};
  exchange.dtype = call.dtype;
  exchange.input = call.input;
  exchange.output = call.output;
  exchange.received = *received;
  std::ranges::fill(parts_, ByteRange{});
  if (names_receiver(call.collective.kind)) parts_[call.to] = {0, call.input.size()};
  exchange.sent = parts_;
  Status status = run(exchange, timeout_);
  // The sizes are those that ranks told one another.
  if (!status && status.error().kind == ErrorKind::Internal) {
    status.error().kind = ErrorKind::CorruptPayload;
  }
  CINCH_TRY(status);
  end_routed(call, *received);
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
