// A transport that injects a fault at one of its exchanges.
#pragma once
#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include "tests/collective/support/forwarding_transport.h"

namespace cinch::testing {

enum class FaultKind : std::uint8_t {
  None,
  Fails,
  FailsLater,
  Deaf,  // fails when the exchange has ended, so that others may have completed it
  Dies,  // fails without telling the others
  Hangs,
  Stops,   // stops the process, until another one sends SIGCONT
  Killed,  // kills the process
  Late,
  OtherSize,  // it sends or expects less than the others know
  Garbage,
  GarbageInPayloads
};

/// Counts exchanges, of one kind if it is given, from arm() on.
class FaultyTransport : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  void arm(FaultKind kind, std::uint64_t at,
           std::optional<rt::ExchangeKind> exchange = std::nullopt) {
    kind_ = kind;
    exchange_ = exchange;
    at_ = at;
    num_started_ = 0;
  }
  bool has_struck() const { return has_struck_; }

  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override {
    // Garbage is injected into received data.
    const bool counts =
        (!is_garbage() || !exchange.output.empty()) && (!exchange_ || *exchange_ == exchange.kind);
    const bool strikes = kind_ != FaultKind::None && counts && num_started_++ == at_;
    has_struck_ = has_struck_ || strikes;
    if (strikes && (kind_ == FaultKind::Fails || kind_ == FaultKind::Dies)) return failure();
    if (strikes && kind_ == FaultKind::Stops) std::raise(SIGSTOP);
    if (strikes && kind_ == FaultKind::Killed) std::raise(SIGKILL);
    if (strikes && kind_ == FaultKind::OtherSize) {
      return ForwardingTransport::start(shortened(exchange));
    }
    if (strikes && kind_ == FaultKind::Late) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const auto ticket = ForwardingTransport::start(exchange);
    if (ticket && strikes) {
      struck_ = {true, ticket->index, exchange.output, {}};
      const bool comes_in_parts = exchange.kind == rt::ExchangeKind::AllGather ||
                                  exchange.kind == rt::ExchangeKind::AllToAll;
      if (comes_in_parts) {
        struck_.parts.assign(exchange.received.begin(), exchange.received.end());
      }
    }
    return ticket;
  }

  void abandon(const rt::Error& why) override {
    if (!has_struck_ || kind_ != FaultKind::Dies) ForwardingTransport::abandon(why);
  }

  rt::Result<bool> test(rt::Ticket ticket) override {
    const bool is_struck = struck_.is_under_way && struck_.ticket == ticket.index;
    if (is_struck && kind_ == FaultKind::FailsLater) return failure();
    // Whether it ended or not: this rank never learns of it.
    if (is_struck && kind_ == FaultKind::Hangs) return false;
    auto is_over = ForwardingTransport::test(ticket);
    if (!is_struck || !is_over || !*is_over) return is_over;
    if (kind_ == FaultKind::Deaf) return failure();
    if (kind_ == FaultKind::Garbage) spoil(0);
    if (kind_ == FaultKind::GarbageInPayloads) spoil(kHeaderBytes);
    struck_.is_under_way = false;
    return is_over;
  }

 private:
  static constexpr std::size_t kHeaderBytes = 64;
  bool is_garbage() const {
    return kind_ == FaultKind::Garbage || kind_ == FaultKind::GarbageInPayloads;
  }
  struct Struck {
    bool is_under_way = false;
    std::uint32_t ticket = 0;
    std::span<std::uint8_t> output;
    std::vector<rt::ByteRange> parts;
  };
  // Spoils the received bytes only: the rest of the memory may be in use. Keeps the first bytes of
  // each other rank's part.
  void spoil(std::size_t kept) {
    if (struck_.parts.empty() && struck_.output.size() > kept) fill(struck_.output.subspan(kept));
    for (std::uint32_t from = 0; from < struck_.parts.size(); ++from) {
      const rt::ByteRange& part = struck_.parts[from];
      if (from == rank() || part.size <= kept) continue;
      fill(struck_.output.subspan(part.offset, part.size).subspan(kept));
    }
  }
  rt::Exchange shortened(rt::Exchange exchange) {
    sent_.assign(exchange.sent.begin(), exchange.sent.end());
    received_.assign(exchange.received.begin(), exchange.received.end());
    // At least one element of every type.
    constexpr std::size_t kLess = 8;
    const auto shorten = [](auto& span) { span = span.first(span.size() - kLess); };
    const bool sends_parts = exchange.kind == rt::ExchangeKind::AllToAll ||
                             exchange.kind == rt::ExchangeKind::ReduceScatter;
    for (std::uint32_t to = 0; sends_parts && to < sent_.size(); ++to) {
      if (to != rank()) sent_[to].size -= kLess;
    }
    if (exchange.kind == rt::ExchangeKind::AllGather) received_[rank()].size -= kLess;
    if (!sends_parts && !exchange.input.empty()) shorten(exchange.input);
    const bool awaits_less = exchange.kind == rt::ExchangeKind::Receive ||
                             exchange.kind == rt::ExchangeKind::Broadcast ||
                             exchange.kind == rt::ExchangeKind::AllReduce;
    if (awaits_less) shorten(exchange.output);
    exchange.sent = sent_;
    exchange.received = received_;
    return exchange;
  }
  static void fill(std::span<std::uint8_t> bytes) { std::ranges::fill(bytes, std::uint8_t{0x5a}); }
  static tl::unexpected<rt::Error> failure() {
    return rt::fail(rt::ErrorKind::Device, "the network card is on fire");
  }

  FaultKind kind_ = FaultKind::None;
  std::optional<rt::ExchangeKind> exchange_;
  std::vector<rt::ByteRange> sent_, received_;  // of an exchange with another size
  std::uint64_t at_ = 0, num_started_ = 0;
  bool has_struck_ = false;
  Struck struck_;
};

}  // namespace cinch::testing
