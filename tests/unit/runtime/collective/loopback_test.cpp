// Ranks that are threads: exchanges of all kinds and sizes, links with a shape, and ranks that
// fail.
#include "runtime/collective/loopback.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::rt {
namespace {

void run_ranks(std::uint32_t world, LinkShape shape, const std::function<void(Transport&)>& body) {
  LoopbackWorld ranks(world, shape);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { body(*ranks.transport(rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WaitLog, TellsWhomARankWaitsForAndThenWheneverTheWaitHasDoubled) {
  using std::chrono::milliseconds, std::chrono::seconds;
  LoopbackWorld ranks(3);
  const auto transport = ranks.transport(1);
  std::vector<std::uint8_t> room(8);
  Exchange receive{ExchangeKind::Receive, 2};
  receive.output = room;
  const auto ticket = transport->start(receive);
  ASSERT_TRUE(ticket);
  WaitLog log(seconds(300));
  const auto line = [&](auto standstill) {
    return log.line(*transport, *ticket, standstill, "step 7").value_or("");
  };
  EXPECT_EQ(line(milliseconds(29999)), "");
  EXPECT_EQ(line(seconds(30)), "rank 1 has waited 30 s for rank 2 (step 7), and gives up in 270 s");
  EXPECT_EQ(line(seconds(59)), "");
  EXPECT_EQ(line(seconds(61)), "rank 1 has waited 61 s for rank 2 (step 7), and gives up in 239 s");
  EXPECT_EQ(line(seconds(119)), "");
  EXPECT_NE(line(seconds(120)), "");
  log.begin();
  EXPECT_NE(line(seconds(30)), "");
  WaitLog short_log(seconds(4));
  EXPECT_FALSE(short_log.is_due(milliseconds(399)));
  EXPECT_TRUE(short_log.is_due(milliseconds(400)));
}

class EachWorld : public testing::TestWithParam<std::uint32_t> {};

TEST_P(EachWorld, ExchangesEverything) {
  run_ranks(GetParam(), {}, check_everything);
}

TEST_P(EachWorld, ExchangesEverythingOverShapedLinks) {
  run_ranks(GetParam(), {1e-5, 1e9}, check_everything);
}

TEST_P(EachWorld, AddsFloatsInRankOrder) {
  run_ranks(GetParam(), {}, check_sums_in_rank_order);
}

INSTANTIATE_TEST_SUITE_P(Loopback, EachWorld, testing::Values(1, 2, 3, 4, 5, 8),
                         testing::PrintToStringParamName());

// The least that the model allows; how much longer it takes is the machine's business.
TEST(Loopback, ShapedMessagesTakeTheirTime) {
  constexpr double kLatency = 0.01, kBytesPerSecond = 1e7;
  constexpr std::size_t kBytes = 200000;
  const auto start = std::chrono::steady_clock::now();
  run_ranks(3, {kLatency, kBytesPerSecond}, [](Transport& transport) {
    check_broadcast(transport, 0, kBytes);  // two messages leave one after the other
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took.count(), kLatency + 2 * kBytes / kBytesPerSecond);
}

TEST(LinkTime, FillsWhatOthersLeaveFree) {
  using std::chrono::seconds;
  const LinkClock::time_point zero{};
  const auto at = [&](int second) { return zero + seconds(second); };
  LinkTime link;
  EXPECT_EQ(link.take(zero, at(10), seconds(5)), at(15));
  EXPECT_EQ(link.take(zero, at(20), seconds(5)), at(25));
  // Three seconds before, and the fourth between the two.
  EXPECT_EQ(link.take(zero, at(7), seconds(4)), at(16));
  EXPECT_EQ(link.take(zero, at(12), seconds(10)), at(31));
  EXPECT_EQ(link.take(zero, at(8), seconds(0)), at(8));
  EXPECT_EQ(link.take(zero, at(0), seconds(8)), at(32));
  // What is over does not count any more.
  EXPECT_EQ(link.take(at(40), at(40), seconds(1)), at(41));
}

// Each pause would last an hour.
TEST(Loopback, APauseEndsWhenItIsWokenAndWhenSomethingComes) {
  constexpr std::chrono::hours kLong(1);
  for (const LinkShape& shape : {LinkShape{}, LinkShape{1e-3, 1e9}}) {
    LoopbackWorld world(2, shape);
    const auto first = world.transport(0), second = world.transport(1);
    EXPECT_TRUE(first->wake());
    first->pause(kLong);  // woken before it began
    std::thread other([&] { first->wake(); });
    first->pause(kLong);
    other.join();
    std::vector<std::uint8_t> byte(1);
    Exchange exchange{ExchangeKind::Receive, 1};
    exchange.output = byte;
    const auto ticket = first->start(exchange);
    ASSERT_TRUE(ticket);
    ASSERT_FALSE(*first->test(*ticket));
    std::thread sender([&] {
      Exchange sent{ExchangeKind::Send, 0};
      sent.input = byte;
      EXPECT_TRUE(second->start(sent));
    });
    first->pause(kLong);
    sender.join();
    EXPECT_TRUE(wait_for(*first, *ticket, kPatience));
  }
}

TEST(Loopback, CountsWhatItSends) {
  run_ranks(4, {}, [](Transport& transport) {
    check_all_reduce<float>(transport, kF32, 4000);
    // Three slices of a quarter, twice: as a ring.
    EXPECT_EQ(transport.sent_bytes(), 2u * 3 * 4000);
  });
}

TEST(Loopback, ARankThatGivesUpIsNamed) {
  run_ranks(3, {}, [](Transport& transport) {
    if (transport.rank() == 1) return transport.abandon({ErrorKind::Io, "its disk is full"});
    std::vector<float> values(10);
    Exchange exchange{ExchangeKind::AllReduce};
    exchange.reduction = RankReduction::Sum;
    exchange.input = bytes_of(values);
    exchange.output = room_of(values);
    const auto ticket = transport.start(exchange);
    ASSERT_TRUE(ticket);
    const Status status = wait_for(transport, *ticket, kPatience);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
    // Also if it heard it from the other one, which gives up for that reason.
    EXPECT_EQ(status.error().message, "rank 1 gave up: its disk is full");
    transport.abandon(status.error());
  });
}

TEST(Loopback, ARankThatLeavesIsNotWaitedFor) {
  run_ranks(3, {}, [](Transport& transport) {
    if (transport.rank() == 2) return;
    // The others may still meet.
    std::vector<std::uint8_t> byte(1);
    Exchange between{transport.rank() == 0 ? ExchangeKind::Send : ExchangeKind::Receive,
                     1 - transport.rank()};
    between.input = byte;
    between.output = byte;
    run_exchange(transport, between);
    Exchange missing{ExchangeKind::Receive, 2};
    missing.output = byte;
    const auto ticket = transport.start(missing);
    ASSERT_TRUE(ticket);
    const Status status = wait_for(transport, *ticket, kPatience);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "rank 2 has left");
  });
}

TEST(Loopback, SaysWhomItWaitsFor) {
  run_ranks(3, {}, [](Transport& transport) {
    std::vector<std::uint8_t> byte(1);
    if (transport.rank() == 0) {
      Exchange missing{ExchangeKind::Receive, 2};
      missing.output = byte;
      const auto ticket = transport.start(missing);
      ASSERT_TRUE(ticket);
      EXPECT_EQ(transport.awaited_ranks(*ticket), std::vector<std::uint32_t>{2});
      const Status status = wait_for(transport, *ticket, std::chrono::milliseconds(5));
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind, ErrorKind::TimedOut);
      transport.abandon(status.error());
    } else {
      Exchange from_zero{ExchangeKind::Receive, 0};
      from_zero.output = byte;
      const auto ticket = transport.start(from_zero);
      ASSERT_TRUE(ticket);
      EXPECT_FALSE(wait_for(transport, *ticket, kPatience));
    }
  });
}

// Each of two rounds takes a second: longer than the time-out in all, but something moves between.
TEST(Loopback, TimeOutsAreOfStandstill) {
  constexpr double kBytesPerSecond = 1e5;
  run_ranks(2, {0, kBytesPerSecond}, [](Transport& transport) {
    std::vector<std::uint8_t> values(2 * static_cast<std::size_t>(kBytesPerSecond));
    Exchange sum{ExchangeKind::AllReduce};
    sum.reduction = RankReduction::Sum;
    sum.input = sum.output = values;
    const Status status = exchange_now(transport, sum, std::chrono::milliseconds(1700), "test");
    EXPECT_TRUE(status) << status.error().message;
  });
}

TEST(Loopback, DifferentSizesAreFound) {
  run_ranks(2, {}, [](Transport& transport) {
    std::vector<std::uint8_t> bytes(10);
    const bool sends = transport.rank() == 0;
    Exchange exchange{sends ? ExchangeKind::Send : ExchangeKind::Receive, 1 - transport.rank()};
    exchange.input = bytes;
    exchange.output = std::span(bytes).first(9);
    const auto ticket = transport.start(exchange);
    ASSERT_TRUE(ticket);
    const Status status = wait_for(transport, *ticket, kPatience);
    ASSERT_FALSE(status);
    if (!sends) {
      EXPECT_EQ(status.error().message, "rank 0 sends 10 bytes where rank 1 expects 9");
      transport.abandon(status.error());
    }
  });
}

TEST(Loopback, RefusesWhatDoesNotFit) {
  LoopbackWorld ranks(2);
  const auto transport = ranks.transport(0);
  std::vector<std::uint8_t> bytes(10);
  const std::vector<ByteRange> fine{{0, 5}, {5, 5}}, outside{{0, 5}, {5, 6}}, one{{0, 10}};
  Exchange message{ExchangeKind::Send, 2};
  EXPECT_FALSE(transport->start(message));
  message.peer = 0;
  EXPECT_FALSE(transport->start(message));
  Exchange gather{ExchangeKind::AllGather};
  gather.input = std::span(bytes).first(5);
  gather.output = bytes;
  for (const auto* parts : {&outside, &one}) {
    gather.received = *parts;
    EXPECT_FALSE(transport->start(gather));
  }
  gather.received = fine;
  gather.input = std::span(bytes).first(4);
  EXPECT_FALSE(transport->start(gather));
  Exchange reduce{ExchangeKind::AllReduce};
  reduce.input = reduce.output = bytes;
  EXPECT_FALSE(transport->start(reduce));  // no reduction
  reduce.reduction = RankReduction::Sum;
  reduce.dtype = kF8E4M3;
  EXPECT_FALSE(transport->start(reduce));
  EXPECT_FALSE(transport->test(Ticket{7}));
}

TEST(Loopback, RefusesWhatIsOnADevice) {
  LoopbackWorld ranks(2);
  const auto transport = ranks.transport(0);
  std::vector<std::uint8_t> bytes(10);
  Exchange on_device{ExchangeKind::Send, 1};
  on_device.input = bytes;
  on_device.place = MemoryPlace::Device;
  const auto refused = transport->start(on_device);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "send: the transport loopback does not take a device's memory");
  on_device.place = MemoryPlace::Host;
  on_device.after = &bytes;
  const auto unordered = transport->start(on_device);
  ASSERT_FALSE(unordered);
  EXPECT_EQ(unordered.error().message,
            "send: the transport loopback does not wait for a device's stream");
}

// Rank 0 waits for rank 1, which waits for rank 2; both clocks run out, rank 0's a little earlier.
TEST(Loopback, ALateRankThatWaitsItselfIsNotNamed) {
  std::vector<std::string> errors(3);
  run_ranks(3, {}, [&](Transport& transport) {
    const std::uint32_t rank = transport.rank();
    std::vector<std::uint8_t> byte(1);
    if (rank < 2) {
      Exchange receive{ExchangeKind::Receive, rank + 1};
      receive.output = byte;
      const std::chrono::milliseconds timeout(rank == 0 ? 300 : 330);
      const Status status = exchange_now(transport, receive, timeout, "test");
      if (!status) errors[rank] = status.error().message;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
    }
  });
  EXPECT_EQ(errors[0],
            "test: nothing has moved for 300 ms; rank 1 gave up: test: nothing has moved for 330 "
            "ms, waits for rank 2");
  EXPECT_EQ(errors[1], "test: nothing has moved for 330 ms, waits for rank 2");
}

}  // namespace
}  // namespace cinch::rt
