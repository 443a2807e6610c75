// A transport that forwards every call, for tests that override some of them.
#pragma once
#include <vector>

#include "runtime/collective/transport.h"

namespace cinch::testing {

class ForwardingTransport : public rt::Transport {
 public:
  /// `inner` outlives this.
  explicit ForwardingTransport(rt::Transport& inner) : inner_(inner) {}

  std::string_view name() const override { return inner_.name(); }
  std::uint32_t rank() const override { return inner_.rank(); }
  std::uint32_t world() const override { return inner_.world(); }
  bool sums_in_rank_order() const override { return inner_.sums_in_rank_order(); }
  bool takes_device_memory(rt::ExchangeKind kind) const override {
    return inner_.takes_device_memory(kind);
  }
  bool lend(const rt::LentMemory& memory) override { return inner_.lend(memory); }
  void take_back(std::span<std::uint8_t> memory) override { inner_.take_back(memory); }
  std::uint64_t sent_bytes() const override { return inner_.sent_bytes(); }
  std::uint64_t num_moves() const override { return inner_.num_moves(); }
  void pause(std::chrono::microseconds most) override { inner_.pause(most); }
  bool wake() override { return inner_.wake(); }
  void abandon(const rt::Error& why) override { inner_.abandon(why); }
  std::vector<std::uint32_t> awaited_ranks(rt::Ticket ticket) const override {
    return inner_.awaited_ranks(ticket);
  }
  std::optional<rt::Error> last_words(std::uint32_t of) const override {
    return inner_.last_words(of);
  }
  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override {
    return inner_.start(exchange);
  }
  rt::Result<bool> test(rt::Ticket ticket) override { return inner_.test(ticket); }

 private:
  rt::Transport& inner_;
};

}  // namespace cinch::testing
