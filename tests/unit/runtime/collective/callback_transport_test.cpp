// Collectives that a host lends: here a loopback world behind C functions.
#include "runtime/collective/callback_transport.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>

#include "runtime/collective/loopback.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::rt {
namespace {

constexpr std::int32_t kBroken = 7;

// What a host has to do: exchanges from C, tickets of its own.
class Host {
 public:
  explicit Host(Transport& inner) : inner_(inner) {}

  cinch_transport_calls calls() {
    cinch_transport_calls calls = {};
    calls.struct_size = sizeof calls;
    calls.context = this;
    calls.rank = inner_.rank();
    calls.world = inner_.world();
    calls.sums_in_rank_order = 1;
    calls.start = [](void* context, const cinch_exchange* exchange, std::uint64_t* ticket) {
      return static_cast<Host*>(context)->start(*exchange, *ticket);
    };
    calls.test = [](void* context, std::uint64_t ticket, std::int32_t* is_over) {
      return static_cast<Host*>(context)->test(ticket, *is_over);
    };
    calls.wait = [](void* context, std::uint64_t most) {
      static_cast<Host*>(context)->inner_.pause(std::chrono::microseconds(most));
    };
    calls.abandon = [](void* context, const char* why) {
      static_cast<Host*>(context)->inner_.abandon({ErrorKind::Cancelled, why});
    };
    calls.error_text = [](void* context, std::int32_t, char* text, std::size_t room) {
      const std::string& message = static_cast<Host*>(context)->message_;
      std::strncpy(text, message.c_str(), room);
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
    // The numbers of both sides are in the same order.
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

void run_ranks(std::uint32_t world, const std::function<void(Transport&)>& body) {
  LoopbackWorld ranks(world);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      const auto inner = ranks.transport(rank);
      Host host(*inner);
      const auto transport = make_callback_transport(host.calls());
      ASSERT_TRUE(transport) << transport.error().message;
      body(**transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CallbackTransport, ExchangesEverything) {
  for (const std::uint32_t world : {1, 2, 3, 5}) run_ranks(world, check_everything);
}

TEST(CallbackTransport, CountsWhatItSends) {
  run_ranks(4, [](Transport& transport) {
    check_all_reduce<float>(transport, kF32, 4000);
    EXPECT_EQ(transport.sent_bytes(), 2u * 3 * 4000);
  });
}

TEST(CallbackTransport, TellsTheHostsErrors) {
  run_ranks(2, [](Transport& transport) {
    if (transport.rank() == 0) return transport.abandon({ErrorKind::Io, "its disk is full"});
    std::vector<std::uint8_t> byte(1);
    Exchange receive{ExchangeKind::Receive, 0};
    receive.output = byte;
    const Status status = exchange_now(transport, receive, kPatience);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::Device);
    EXPECT_EQ(status.error().native_code, kBroken);
    EXPECT_EQ(status.error().message, "the host's collectives: rank 0 gave up: its disk is full");
  });
}

TEST(CallbackTransport, RefusesTablesThatAreNone) {
  LoopbackWorld ranks(1);
  const auto inner = ranks.transport(0);
  Host host(*inner);
  const cinch_transport_calls good = host.calls();
  cinch_transport_calls bad = good;
  bad.struct_size = 8;
  EXPECT_FALSE(make_callback_transport(bad));
  bad = good;
  bad.start = nullptr;
  EXPECT_FALSE(make_callback_transport(bad));
  bad = good;
  bad.rank = 1;
  EXPECT_FALSE(make_callback_transport(bad));
  const auto transport = make_callback_transport(good);
  ASSERT_TRUE(transport);
  EXPECT_FALSE((*transport)->test(Ticket{0}));
}

}  // namespace
}  // namespace cinch::rt
