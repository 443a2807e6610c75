// Requirements for every transport, over TCP and over shared memory; ranks that give up and leave.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/collective/transport_checks.h"
#include "tests/unit/runtime/collective/ucx/ucx_threads.h"

namespace cinch::rt {
namespace {

class UcxOver : public ::testing::TestWithParam<const char*> {
 protected:
  void run(std::uint32_t world, const std::function<void(std::unique_ptr<Transport>&)>& body) {
    run_ucx_threads(ucx_options(world, GetParam()), body);
  }
};

TEST_P(UcxOver, ExchangesEverything) {
  for (const std::uint32_t world : {1, 2, 3, 5}) {
    run(world, [](auto& transport) { check_everything(*transport); });
    if (HasFailure()) return;
  }
}

TEST_P(UcxOver, AddsInRankOrder) {
  run(4, [](auto& transport) {
    EXPECT_EQ(transport->name(), "ucx");
    EXPECT_TRUE(transport->sums_in_rank_order());
    check_sums_in_rank_order(*transport);
  });
}

TEST_P(UcxOver, CountsWhatItSends) {
  run(4, [](auto& transport) {
    check_all_reduce<float>(*transport, kF32, 4000);
    EXPECT_EQ(transport->sent_bytes(), 2u * 3 * 4000);
  });
}

TEST_P(UcxOver, ExchangesLargeMessages) {
  run(2, [](auto& transport) {
    check_all_to_all(*transport, 20000000);
    check_all_reduce<float>(*transport, kF32, 3000001);
  });
}

TEST_P(UcxOver, RefusesWhatDoesNotFit) {
  run(2, [](auto& transport) {
    std::vector<std::uint8_t> bytes(10);
    EXPECT_FALSE(transport->start({ExchangeKind::Send, transport->world()}));
    Exchange reduce{ExchangeKind::AllReduce};
    reduce.input = reduce.output = bytes;
    EXPECT_FALSE(transport->start(reduce));  // no reduction
    EXPECT_FALSE(transport->test(Ticket{7}));
    check_messages(*transport, 5);
  });
}

TEST_P(UcxOver, AnotherThreadWakesIt) {
  run(2, [](auto& transport) {
    std::thread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_TRUE(transport->wake());
    });
    const auto begin = std::chrono::steady_clock::now();
    // The first ones only let others run; one that waits ends when it is woken.
    for (int i = 0; i < 21; ++i) transport->pause(std::chrono::seconds(60));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    waker.join();
    check_messages(*transport, 5);
  });
}

Status run_one(Transport& transport, const Exchange& exchange,
               std::chrono::milliseconds timeout = kPatience) {
  const auto ticket = transport.start(exchange);
  if (!ticket) return tl::unexpected<Error>(ticket.error());
  return wait_for(transport, *ticket, timeout);
}

std::string error_of(Transport& transport, const Exchange& exchange,
                     std::chrono::milliseconds timeout = kPatience) {
  const Status status = run_one(transport, exchange, timeout);
  return status ? "" : status.error().message;
}

TEST_P(UcxOver, ARankThatGivesUpIsNamed) {
  run(3, [](auto& transport) {
    if (transport->rank() == 1) return transport->abandon({ErrorKind::Io, "its disk is full"});
    std::vector<float> values(100000);
    Exchange exchange{ExchangeKind::AllReduce};
    exchange.reduction = RankReduction::Sum;
    exchange.input = bytes_of(values);
    exchange.output = room_of(values);
    const std::string error = error_of(*transport, exchange);
    EXPECT_TRUE(error.ends_with("rank 1 gave up: its disk is full")) << error;
    EXPECT_FALSE(transport->start(exchange));
    transport.reset();  // before the memory of its messages
  });
}

TEST_P(UcxOver, ARankThatLeavesHasDoneItsPart) {
  run(3, [](auto& transport) {
    std::vector<std::uint8_t> bytes(3000, 7);
    if (transport->rank() == 2) {
      Exchange send{ExchangeKind::Send, 0};
      send.input = bytes;
      EXPECT_EQ(error_of(*transport, send), "");
      return transport.reset();
    }
    if (transport->rank() != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    bytes.assign(3000, 0);
    Exchange receive{ExchangeKind::Receive, 2};
    receive.output = bytes;
    EXPECT_EQ(error_of(*transport, receive), "");
    EXPECT_EQ(bytes, std::vector<std::uint8_t>(3000, 7));
    EXPECT_EQ(error_of(*transport, receive), "rank 2 has left");
  });
}

TEST_P(UcxOver, SaysWhomItWaitsFor) {
  run(3, [](auto& transport) {
    if (transport->rank() == 2) return;
    std::vector<std::uint8_t> byte(1);
    Exchange missing{ExchangeKind::Receive, 1 - transport->rank()};
    missing.output = byte;
    if (transport->rank() == 1) {
      EXPECT_EQ(error_of(*transport, missing),
                "rank 0 gave up: nothing has moved for 50 ms, waits for rank 1");
      return;
    }
    const Status status = run_one(*transport, missing, std::chrono::milliseconds(50));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::TimedOut);
    transport->abandon(status.error());
  });
}

// A rank that gave up owns its memory again, although messages still arrive.
TEST_P(UcxOver, MemoryIsFreeAfterGivingUp) {
  run(2, [](auto& transport) {
    std::vector<std::uint8_t> bytes(20000000, transport->rank() == 0 ? 1 : 2);
    if (transport->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(80));
      Exchange send{ExchangeKind::Send, 0};
      send.input = bytes;
      (void)error_of(*transport, send);  // it may have come before the other one gave up
      return transport.reset();
    }
    Exchange receive{ExchangeKind::Receive, 1};
    receive.output = bytes;
    (void)error_of(*transport, receive, std::chrono::milliseconds(70));
    transport->abandon({ErrorKind::Cancelled, "tired of waiting"});
    const std::vector<std::uint8_t> left = bytes;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(bytes == left);
  });
}

// Messages that have arrived, short and long, and that nobody asks for.
TEST_P(UcxOver, MessagesThatNobodyTakesAreDropped) {
  for (const bool gives_up : {true, false}) {
    run(2, [&](auto& transport) {
      const std::vector<std::uint8_t> bytes(3000000, 3);
      if (transport->rank() == 1) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{10}, bytes.size()}) {
          Exchange send{ExchangeKind::Send, 0};
          send.input = std::span(bytes).first(size);
          ASSERT_TRUE(transport->start(send));
        }
      }
      // Both have heard of each other's messages.
      check_all_gather(*transport, 5);
      if (transport->rank() == 0 && gives_up) transport->abandon({ErrorKind::Io, "no room"});
      if (transport->rank() == 1) {
        Exchange receive{ExchangeKind::Receive, 0};
        std::vector<std::uint8_t> byte(1);
        receive.output = byte;
        EXPECT_EQ(error_of(*transport, receive),
                  gives_up ? "rank 0 gave up: no room" : "rank 0 has left");
      }
      transport.reset();
    });
  }
}

TEST_P(UcxOver, OtherSizesAreFound) {
  for (const std::size_t wanted : {9, 11}) {
    run(2, [&](auto& transport) {
      std::vector<std::uint8_t> bytes(11);
      const bool sends = transport->rank() == 0;
      Exchange exchange{sends ? ExchangeKind::Send : ExchangeKind::Receive, 1 - transport->rank()};
      exchange.input = std::span(bytes).first(10);
      exchange.output = std::span(bytes).first(wanted);
      const std::string error = error_of(*transport, exchange);
      const std::string expected =
          fmt::format("rank 0 sends 10 bytes where rank 1 expects {}", wanted);
      if (!sends) EXPECT_EQ(error, expected);
      if (!sends) return;
      EXPECT_EQ(error_of(*transport, {ExchangeKind::Receive, 1}), "rank 1 gave up: " + expected);
    });
  }
}

TEST_P(UcxOver, RanksComeAgainAfterAFault) {
  for (int round = 0; round < 2; ++round) {
    run(3, [](auto& transport) {
      check_messages(*transport, 100);
      if (transport->rank() == 2) transport->abandon({ErrorKind::CheckFailed, "x > 0"});
      std::vector<std::uint8_t> byte(1);
      Exchange broadcast{ExchangeKind::Broadcast, 2};
      broadcast.output = byte;
      if (transport->rank() != 2) {
        EXPECT_EQ(error_of(*transport, broadcast), "rank 2 gave up: x > 0");
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ucx, UcxOver, ::testing::Values("tcp", "posix,self"), [](const auto& each) {
      return std::string(each.param).substr(0, std::string(each.param).find(','));
    });

TEST(UcxTransport, SaysHowMuchSharedMemoryIsNeeded) {
  constexpr std::uint64_t kMiB = 1 << 20;
  EXPECT_EQ(lack_of_shared_memory(12, 64 * kMiB), "");
  EXPECT_EQ(lack_of_shared_memory(16, 64 * kMiB),
            "/dev/shm has 64 MiB free, and 16 ranks of one machine need 68; make it larger (docker "
            "run --shm-size=68m)");
}

}  // namespace
}  // namespace cinch::rt
