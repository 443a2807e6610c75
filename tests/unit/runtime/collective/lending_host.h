// A host program that provides collectives as C functions, over another transport.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/c_api/cinch_transport.h"
#include "runtime/collective/transport.h"

namespace cinch::rt {

/// The host's part: exchanges from C, with tickets of its own.
class LendingHost {
 public:
  static constexpr std::int32_t kBroken = 7;  // the error that it returns for everything

  explicit LendingHost(Transport& inner) : inner_(inner) {}

  cinch_transport_calls calls() {
    cinch_transport_calls calls = {};
    calls.struct_size = sizeof calls;
    calls.context = this;
    calls.rank = inner_.rank();
    calls.world = inner_.world();
    calls.sums_in_rank_order = 1;
    calls.start = [](void* context, const cinch_exchange* exchange, std::uint64_t* ticket) {
      return static_cast<LendingHost*>(context)->start(*exchange, *ticket);
    };
    calls.test = [](void* context, std::uint64_t ticket, std::int32_t* is_over) {
      return static_cast<LendingHost*>(context)->test(ticket, *is_over);
    };
    calls.wait = [](void* context, std::uint64_t most) {
      static_cast<LendingHost*>(context)->inner_.pause(std::chrono::microseconds(most));
    };
    calls.abandon = [](void* context, const char* why) {
      static_cast<LendingHost*>(context)->inner_.abandon({ErrorKind::Cancelled, why});
    };
    calls.error_text = [](void* context, std::int32_t, char* text, std::size_t room) {
      const std::string& message = static_cast<LendingHost*>(context)->message_;
      std::strncpy(text, message.c_str(), room);
    };
    calls.awaited = [](void* context, std::uint64_t ticket, std::uint32_t* ranks,
                       std::size_t room) {
      auto& host = *static_cast<LendingHost*>(context);
      const auto all = host.inner_.awaited_ranks(host.under_way_.at(ticket).ticket);
      const std::size_t num = std::min(room, all.size());
      std::copy_n(all.begin(), num, ranks);
      return num;
    };
    return calls;
  }

 private:
  struct UnderWay {
    Ticket ticket;
    std::vector<ByteRange> sent, received;
  };

  std::int32_t broken(const Error& error) {
    message_ = error.message;
    return kBroken;
  }
  std::vector<ByteRange> ranges(const std::uint64_t* offsets, const std::uint64_t* sizes) const {
    std::vector<ByteRange> all;
    for (std::uint32_t r = 0; offsets != nullptr && r < inner_.world(); ++r) {
      all.push_back({offsets[r], sizes[r]});
    }
    return all;
  }
  static DType dtype_of(const cinch_exchange& exchange) {
    const auto bits = static_cast<std::uint8_t>(exchange.element_bits);
    if (exchange.element == CINCH_ELEMENT_INT) return *make_int(bits);
    if (exchange.element == CINCH_ELEMENT_UINT) return *make_uint(bits);
    if (exchange.element == CINCH_ELEMENT_BFLOAT) return kBF16;
    return bits == 16 ? kF16 : bits == 32 ? kF32 : kF64;
  }
  std::int32_t start(const cinch_exchange& given, std::uint64_t& ticket) {
    UnderWay& own = under_way_[++num_started_];
    own.sent = ranges(given.sent_offsets, given.sent_sizes);
    own.received = ranges(given.received_offsets, given.received_sizes);
    // The enumerators have the same order on both sides.
    Exchange exchange{static_cast<ExchangeKind>(given.kind), given.peer,
                      static_cast<RankReduction>(given.reduction), dtype_of(given)};
    exchange.input = {static_cast<const std::uint8_t*>(given.input), given.input_bytes};
    exchange.output = {static_cast<std::uint8_t*>(given.output), given.output_bytes};
    exchange.sent = own.sent;
    exchange.received = own.received;
    const auto started = inner_.start(exchange);
    if (!started) return broken(started.error());
    own.ticket = *started;
    ticket = num_started_;
    return 0;
  }
  std::int32_t test(std::uint64_t ticket, std::int32_t& is_over) {
    const auto found = inner_.test(under_way_.at(ticket).ticket);
    if (!found) return broken(found.error());
    is_over = *found ? 1 : 0;
    if (*found) under_way_.erase(ticket);
    return 0;
  }

  Transport& inner_;
  std::uint64_t num_started_ = 0;
  std::map<std::uint64_t, UnderWay> under_way_;
  std::string message_;
};

}  // namespace cinch::rt
