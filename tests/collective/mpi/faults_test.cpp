// Ranks that give up, leave, do not start or disagree; after each a new transport opens in the same
// process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/collective/mpi/rank.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::rt {
namespace {

constexpr std::chrono::milliseconds kShort{50};

// A rank alone cannot run these tests.
class MpiFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (transport->world() == 1) GTEST_SKIP() << "one rank";
  }
  // The next transport works, whatever happened to this one.
  void TearDown() override {
    transport.reset();
    const auto next = open_transport();
    check_messages(*next, 5);
    check_all_reduce<float>(*next, kF32, 1000);
    EXPECT_EQ(given_up, std::vector<std::uint8_t>(given_up.size(), 1));
  }

  Status run(const Exchange& exchange, std::chrono::milliseconds timeout = kPatience) {
    const auto ticket = transport->start(exchange);
    if (!ticket) return tl::unexpected<Error>(ticket.error());
    return wait_for(*transport, *ticket, timeout);
  }

  std::unique_ptr<Transport> transport = open_transport();
  std::vector<std::uint8_t> given_up;  // nothing may write to it any more
};

TEST_F(MpiFaults, ARankThatGivesUpIsNamed) {
  if (transport->rank() == 1) return transport->abandon({ErrorKind::Io, "its disk is full"});
  std::vector<float> values(100000);
  Exchange exchange{ExchangeKind::AllReduce};
  exchange.reduction = RankReduction::Sum;
  exchange.input = bytes_of(values);
  exchange.output = room_of(values);
  const Status status = run(exchange);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
  EXPECT_EQ(status.error().message, "rank 1 gave up: its disk is full");
  EXPECT_FALSE(transport->start(exchange));
}

TEST_F(MpiFaults, ARankThatGivesUpIsNamedByThoseThatItSendsTo) {
  std::vector<std::uint8_t> bytes(3000000);
  Exchange broadcast{ExchangeKind::Broadcast, 0};
  broadcast.output = bytes;
  if (transport->rank() == 0) return transport->abandon({ErrorKind::CheckFailed, "x > 0"});
  const Status status = run(broadcast);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "rank 0 gave up: x > 0");
}

TEST_F(MpiFaults, ARankThatLeavesIsNotWaitedFor) {
  const std::uint32_t last = transport->world() - 1;
  if (transport->rank() == last) return transport.reset();
  std::vector<std::uint8_t> byte(1);
  Exchange missing{ExchangeKind::Receive, last};
  missing.output = byte;
  const Status status = run(missing);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
  // Or another rank has noticed it first, and gave up because of it.
  EXPECT_TRUE(status.error().message.ends_with(fmt::format("rank {} has left", last)))
      << status.error().message;
}

TEST_F(MpiFaults, ThoseWhoStayMayStillMeet) {
  const std::uint32_t rank = transport->rank();
  if (rank > 1) return transport.reset();
  std::this_thread::sleep_for(kShort);
  std::vector<std::uint8_t> byte(1);
  for (const std::uint32_t sender : {0, 1}) {
    Exchange between{rank == sender ? ExchangeKind::Send : ExchangeKind::Receive, 1 - rank};
    between.input = byte;
    between.output = byte;
    run_exchange(*transport, between);
  }
}

// Messages that a rank sends before it leaves still arrive.
TEST_F(MpiFaults, ARankThatLeavesHasDoneItsPart) {
  std::vector<std::uint8_t> bytes(100, 7);
  const std::uint32_t last = transport->world() - 1;
  if (transport->rank() == last) {
    Exchange send{ExchangeKind::Send, 0};
    send.input = bytes;
    EXPECT_TRUE(run(send));
    return transport.reset();
  }
  if (transport->rank() != 0) return;
  std::this_thread::sleep_for(kShort);
  bytes.assign(100, 0);
  Exchange receive{ExchangeKind::Receive, last};
  receive.output = bytes;
  const Status status = run(receive);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(100, 7));
}

TEST_F(MpiFaults, SaysWhomItWaitsFor) {
  std::vector<std::uint8_t> byte(1);
  Exchange missing{ExchangeKind::Receive, transport->rank() == 0 ? 1U : 0U};
  missing.output = byte;
  if (transport->rank() != 0) {
    const Status status = run(missing);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message,
              "rank 0 gave up: nothing has moved for 50 ms, waits for rank 1");
    return;
  }
  const auto ticket = transport->start(missing);
  ASSERT_TRUE(ticket);
  EXPECT_EQ(transport->awaited_ranks(*ticket), std::vector<std::uint32_t>{1});
  const Status status = wait_for(*transport, *ticket, kShort);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::TimedOut);
  transport->abandon(status.error());
}

// A rank that gave up owns its memory again, although messages still arrive.
TEST_F(MpiFaults, MemoryIsFreeAfterGivingUp) {
  given_up.assign(2000000, 1);
  if (transport->rank() > 1) return;
  if (transport->rank() == 1) {
    Exchange send{ExchangeKind::Send, 0};
    const std::vector<std::uint8_t> bytes(given_up.size(), 2);
    send.input = bytes;
    std::this_thread::sleep_for(2 * kShort);
    const auto ticket = transport->start(send);
    ASSERT_TRUE(ticket);
    EXPECT_FALSE(wait_for(*transport, *ticket, kPatience));
    return;
  }
  Exchange receive{ExchangeKind::Receive, 1};
  receive.output = given_up;
  ASSERT_FALSE(run(receive, kShort));
  transport->abandon({ErrorKind::Cancelled, "tired of waiting"});
}

TEST_F(MpiFaults, LongerMessagesAreFound) {
  std::vector<std::uint8_t> bytes(10);
  if (transport->rank() > 1) return;
  const bool sends = transport->rank() == 0;
  Exchange exchange{sends ? ExchangeKind::Send : ExchangeKind::Receive, 1 - transport->rank()};
  exchange.input = bytes;
  exchange.output = std::span(bytes).first(9);
  const Status status = run(exchange);
  if (sends) {  // it learns of it even if the other one just leaves
    const Status answer = run({ExchangeKind::Receive, 1});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message,
              "rank 1 gave up: rank 0 sends more bytes where rank 1 expects 9");
    return;
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Internal);
  EXPECT_EQ(status.error().message, "rank 0 sends more bytes where rank 1 expects 9");
}

TEST_F(MpiFaults, ShorterMessagesAreFound) {
  std::vector<std::uint8_t> bytes(10);
  if (transport->rank() > 1) return;
  const bool sends = transport->rank() == 0;
  Exchange exchange{sends ? ExchangeKind::Send : ExchangeKind::Receive, 1 - transport->rank()};
  exchange.input = std::span(bytes).first(9);
  exchange.output = bytes;
  const Status status = run(exchange);
  if (sends) return;
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Internal);
  EXPECT_EQ(status.error().message, "rank 0 sends 9 bytes where rank 1 expects 10");
}

}  // namespace
}  // namespace cinch::rt
