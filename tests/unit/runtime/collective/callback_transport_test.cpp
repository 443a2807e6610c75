// Collectives of a host program: here a loopback world behind C functions.
#include "runtime/transports/lent/callback_transport.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/collective/loopback.h"
#include "tests/unit/runtime/collective/lending_host.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::rt {
namespace {

void run_ranks(std::uint32_t world, const std::function<void(Transport&)>& body) {
  LoopbackWorld ranks(world);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      const auto inner = ranks.transport(rank);
      LendingHost host(*inner);
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
    const Status status = exchange_now(transport, receive, kPatience, "test");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::Device);
    EXPECT_EQ(status.error().native_code, LendingHost::kBroken);
    EXPECT_EQ(status.error().message,
              "test: the host's collectives: rank 0 gave up: its disk is full");
  });
}

TEST(CallbackTransport, NamesWhomItWaitsFor) {
  run_ranks(3, [](Transport& transport) {
    if (transport.rank() != 0) return;
    std::vector<std::uint8_t> byte(1);
    Exchange receive{ExchangeKind::Receive, 2};
    receive.output = byte;
    const auto ticket = transport.start(receive);
    ASSERT_TRUE(ticket);
    EXPECT_EQ(timed_out(transport, *ticket, std::chrono::milliseconds(5)).message,
              "nothing has moved for 5 ms, waits for rank 2");
  });
}

TEST(CallbackTransport, RefusesTablesThatAreNone) {
  LoopbackWorld ranks(1);
  const auto inner = ranks.transport(0);
  LendingHost host(*inner);
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
  bad = good;
  bad.world = 100000;
  const auto too_many = make_callback_transport(bad);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().message, "100000 ranks: there are 1 to 1024");
  const auto transport = make_callback_transport(good);
  ASSERT_TRUE(transport);
  EXPECT_FALSE((*transport)->test(Ticket{0}));
}

}  // namespace
}  // namespace cinch::rt
