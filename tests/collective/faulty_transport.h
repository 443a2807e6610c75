// A transport that does what a test wants at one of its exchanges.
#pragma once
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/collective/transport.h"

namespace cinch::testing {

enum class FaultKind : std::uint8_t { None, Fails, FailsLater, Hangs, Late, Garbage };

/// Exchanges are counted from arm() on.
class FaultyTransport : public rt::Transport {
 public:
  explicit FaultyTransport(rt::Transport& inner) : inner_(inner) {}

  void arm(FaultKind kind, std::uint64_t at) {
    kind_ = kind;
    at_ = at;
    num_started_ = 0;
  }
  bool has_struck() const { return has_struck_; }

  std::string_view name() const override { return inner_.name(); }
  std::uint32_t rank() const override { return inner_.rank(); }
  std::uint32_t world() const override { return inner_.world(); }
  bool sums_in_rank_order() const override { return inner_.sums_in_rank_order(); }
  std::uint64_t sent_bytes() const override { return inner_.sent_bytes(); }
  void pause(std::chrono::microseconds most) override { inner_.pause(most); }
  void abandon(const rt::Error& why) override { inner_.abandon(why); }
  std::vector<std::uint32_t> awaited_ranks(rt::Ticket ticket) const override {
    return inner_.awaited_ranks(ticket);
  }

  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override {
    const bool strikes = kind_ != FaultKind::None && num_started_++ == at_;
    has_struck_ = has_struck_ || strikes;
    if (strikes && kind_ == FaultKind::Fails) return failure();
    if (strikes && kind_ == FaultKind::Late) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const auto ticket = inner_.start(exchange);
    if (ticket && strikes) struck_ = {true, ticket->index, exchange.output};
    return ticket;
  }

  rt::Result<bool> test(rt::Ticket ticket) override {
    const bool is_struck = struck_.is_under_way && struck_.ticket == ticket.index;
    if (is_struck && kind_ == FaultKind::FailsLater) return failure();
    // It has ended or not: this rank never hears of it.
    if (is_struck && kind_ == FaultKind::Hangs) return false;
    const auto is_over = inner_.test(ticket);
    if (!is_struck || !is_over || !*is_over) return is_over;
    if (kind_ == FaultKind::Garbage) std::ranges::fill(struck_.output, std::uint8_t{0x5a});
    struck_.is_under_way = false;
    return is_over;
  }

 private:
  struct Struck {
    bool is_under_way = false;
    std::uint32_t ticket = 0;
    std::span<std::uint8_t> output;
  };
  static tl::unexpected<rt::Error> failure() {
    return rt::fail(rt::ErrorKind::Device, "the network card is on fire");
  }

  rt::Transport& inner_;
  FaultKind kind_ = FaultKind::None;
  std::uint64_t at_ = 0, num_started_ = 0;
  bool has_struck_ = false;
  Struck struck_;
};

}  // namespace cinch::testing
