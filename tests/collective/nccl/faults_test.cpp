// Ranks that give up, and calls of NCCL that fail, hang or are late: every rank gets an error in
// time, and a new world in the same process works.
#include <latch>
#include <thread>

#include "tests/collective/nccl/double_world.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::testing {
namespace {

using namespace rt;

constexpr std::chrono::milliseconds kShort{500};

Status reduce(Transport& transport, std::chrono::milliseconds timeout) {
  std::vector<float> values(20000, 1);
  Exchange exchange{ExchangeKind::AllReduce};
  exchange.reduction = RankReduction::Sum;
  exchange.input = bytes_of(values);
  exchange.output = rt::room_of(values);
  const Status status = exchange_now(transport, exchange, timeout, "test");
  if (status) EXPECT_EQ(values[7], static_cast<float>(transport.world()));
  return status;
}

// A message that nobody sends; its receive runs on the device.
void receive_nothing(Transport& transport, std::vector<std::uint8_t>& bytes) {
  check_messages(transport, 50);  // opens the way
  Exchange missing{ExchangeKind::Receive,
                   (transport.rank() + transport.world() - 1) % transport.world()};
  missing.output = bytes;
  const auto ticket = transport.start(missing);
  ASSERT_TRUE(ticket) << ticket.error().message;
  for (int i = 0; i < 20; ++i) {
    const auto has_come = transport.test(*ticket);
    ASSERT_TRUE(has_come) << has_come.error().message;
    ASSERT_FALSE(*has_come);
  }
}

using Clock = std::chrono::steady_clock;
// Less than the time limit for calls of the library that do not return.
constexpr std::chrono::milliseconds kAtOnce{1500};

class NcclFaults : public ::testing::TestWithParam<const char*> {
 protected:
  // The next world works, whatever happened to this one.
  void TearDown() override {
    for (int device = 0; device < kDoubleDevices; ++device)
      library.plant(device, kDoubleNoFault, 0);
    library.leave_together(false);
    run_nccl_ranks(library, 3, [](Transport& transport) {
      check_messages(transport, 50);
      check_all_reduce<float>(transport, kF32, 1000);
    });
  }
  // The errors by rank of two all-reduces; empty: none.
  std::vector<std::string> errors_of_ranks(std::chrono::milliseconds timeout,
                                           const NcclOptions& options = {}) {
    std::vector<std::string> errors(3);
    run_nccl_ranks(
        library, 3,
        [&](Transport& transport) {
          Status status = reduce(transport, timeout);
          if (status) status = reduce(transport, timeout);
          if (!status) errors[transport.rank()] = status.error().message;
        },
        options);
    return errors;
  }
  // Plants a fault in an exchange of three ranks (0: that of the ids). In versions that block, all
  // ranks connect before, by a message to and from each.
  void plant_in_exchange(int rank, int fault, std::uint64_t number) {
    library.plant(rank, fault, number + (is_old() ? 4 : 0));
  }
  bool is_old() const { return GetParam() == std::string("nccl_double_old"); }
  // Errors of opening a world of two in which rank 0 does something wrong.
  std::vector<Error> errors_of_opening() {
    const auto id = make_nccl_id(library.file);
    std::vector<Error> errors(2);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        NcclOptions options;
        options.library = library.file;
        options.device = library.device(rank);
        options.timeout = kShort;
        const auto opened = open_nccl_transport(*id, rank, 2, options);
        ASSERT_FALSE(opened);
        errors[rank] = opened.error();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(library.wrong_uses(), "");
    return errors;
  }
  const NcclDouble& library = NcclDouble::open(GetParam());
};

TEST_P(NcclFaults, ARankThatGivesUpIsNamedToItsNeighbours) {
  NcclOptions options;
  options.neighbours = std::make_shared<NcclNeighbours>();
  run_nccl_ranks(
      library, 3,
      [](Transport& transport) {
        Status status = reduce(transport, kPatience);  // all have opened by then
        if (transport.rank() == 1) return transport.abandon({ErrorKind::Io, "its disk is full"});
        if (status) status = reduce(transport, kPatience);
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
        EXPECT_EQ(status.error().message, "test: rank 1 gave up: its disk is full");
        EXPECT_FALSE(reduce(transport, kPatience));  // and it stays so
      },
      options);
}

TEST_P(NcclFaults, OthersWaitOnlySoLongForARankThatIsGone) {
  run_nccl_ranks(library, 3, [](Transport& transport) {
    if (transport.rank() == 1) return transport.abandon({ErrorKind::Io, "its disk is full"});
    const Status status = reduce(transport, kShort);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "test: nothing has moved for 500 ms");
  });
}

// An abort frees memory, and so waits for the kernels of all communicators.
TEST_P(NcclFaults, WhoGivesUpStopsAllThatIsUnderWay) {
  run_nccl_ranks(library, 3, [](Transport& transport) {
    std::vector<std::uint8_t> bytes(100);
    receive_nothing(transport, bytes);
    const auto begin = Clock::now();
    if (transport.rank() == 1) {
      transport.abandon({ErrorKind::Io, "its disk is full"});
      EXPECT_LT(Clock::now() - begin, kAtOnce);
      return;
    }
    EXPECT_FALSE(reduce(transport, kShort));
    EXPECT_LT(Clock::now() - begin, kShort + kAtOnce);
  });
}

// As after SIGSTOP: the others' aborts wait for its own, which may never come.
TEST_P(NcclFaults, ARankThatHasStoppedHoldsNobodyUp) {
  library.leave_together(true);
  const auto id = make_nccl_id(library.file);
  std::latch has_left(1);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      NcclOptions options;
      options.library = library.file;
      options.device = library.device(rank);
      auto opened = open_nccl_transport(*id, rank, 2, options);
      ASSERT_TRUE(opened) << opened.error().message;
      std::vector<std::uint8_t> bytes(100);
      receive_nothing(**opened, bytes);
      if (rank == 1) return has_left.wait();
      const auto begin = Clock::now();
      EXPECT_FALSE(reduce(**opened, kShort));
      opened->reset();
      EXPECT_LT(Clock::now() - begin, kShort + std::chrono::milliseconds(5000));
      has_left.count_down();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(library.wrong_uses(), "");
}

TEST_P(NcclFaults, RanksGiveUpAndLeaveInAnyOrder) {
  library.leave_together(true);
  const auto begin = Clock::now();
  run_nccl_ranks(library, 3, [](Transport& transport) {
    check_messages(transport, 50);
    check_all_reduce<float>(transport, kF32, 1000);
    if (transport.rank() == 1) transport.abandon({ErrorKind::Io, "its disk is full"});
  });
  EXPECT_LT(Clock::now() - begin, kAtOnce);
}

TEST_P(NcclFaults, SaysWhomAMessageWaitsFor) {
  run_nccl_ranks(library, 2, [](Transport& transport) {
    if (transport.rank() == 1) return;
    std::vector<std::uint8_t> bytes(100, 1);
    Exchange missing{ExchangeKind::Receive, 1};
    missing.output = bytes;
    const Status status = exchange_now(transport, missing, kShort, "test");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "test: nothing has moved for 500 ms, waits for rank 1");
    EXPECT_EQ(bytes, std::vector<std::uint8_t>(100, 1));
  });
}

// NCCL hangs if sizes differ.
TEST_P(NcclFaults, DifferentSizesEndInTime) {
  run_nccl_ranks(library, 2, [](Transport& transport) {
    std::vector<std::uint8_t> bytes(10);
    const bool sends = transport.rank() == 0;
    Exchange exchange{sends ? ExchangeKind::Send : ExchangeKind::Receive, 1 - transport.rank()};
    exchange.input = bytes;
    exchange.output = std::span(bytes).first(9);
    const Status status = exchange_now(transport, exchange, kShort, "test");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::TimedOut);
  });
}

TEST_P(NcclFaults, ACallThatFailsIsTold) {
  plant_in_exchange(1, kDoubleFails, 1);
  const auto errors = errors_of_ranks(kShort);
  EXPECT_EQ(errors[1].find("test: NCCL, exchanging: unhandled system error"), 0u) << errors[1];
  EXPECT_EQ(errors[0], "test: nothing has moved for 500 ms");
  EXPECT_EQ(errors[2], "test: nothing has moved for 500 ms");
}

TEST_P(NcclFaults, ACallThatFailsIsToldToNeighbours) {
  plant_in_exchange(1, kDoubleFails, 2);  // all have opened by then
  NcclOptions options;
  options.neighbours = std::make_shared<NcclNeighbours>();
  const auto errors = errors_of_ranks(kPatience, options);
  EXPECT_EQ(errors[1].find("test: NCCL, exchanging: unhandled system error"), 0u) << errors[1];
  for (const std::size_t other : {0, 2}) {
    EXPECT_EQ(
        errors[other].find("test: rank 1 gave up: test: NCCL, exchanging: unhandled system error"),
        0u)
        << errors[other];
  }
}

TEST_P(NcclFaults, AnErrorOfTheCommunicatorIsTold) {
  plant_in_exchange(2, kDoubleFailsLater, 1);
  const auto errors = errors_of_ranks(kShort);
  EXPECT_EQ(errors[2].find("test: NCCL, exchanging: remote process exited"), 0u) << errors[2];
  EXPECT_EQ(errors[0], "test: nothing has moved for 500 ms");
}

TEST_P(NcclFaults, ACallThatHangsEndsInTime) {
  plant_in_exchange(0, kDoubleHangs, 1);
  for (const std::string& error : errors_of_ranks(kShort)) {
    EXPECT_EQ(error, "test: nothing has moved for 500 ms");
  }
}

TEST_P(NcclFaults, ALateCallIsWaitedFor) {
  plant_in_exchange(0, kDoubleLate, 1);
  for (const std::string& error : errors_of_ranks(kPatience)) EXPECT_EQ(error, "");
}

TEST_P(NcclFaults, OpeningFailsWhereItsCallsFail) {
  library.plant(0, kDoubleFails, 0);
  const auto errors = errors_of_opening();
  EXPECT_EQ(errors[0].kind, ErrorKind::Device);
  EXPECT_NE(errors[0].message.find("unhandled system error"), std::string::npos)
      << errors[0].message;
  EXPECT_EQ(errors[1].kind, ErrorKind::TimedOut) << errors[1].message;
}

TEST_P(NcclFaults, OpeningEndsInTimeWhereItsCallsHang) {
  library.plant(0, kDoubleHangs, 0);
  for (const Error& error : errors_of_opening()) {
    EXPECT_EQ(error.kind, ErrorKind::TimedOut) << error.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Nccl, NcclFaults, ::testing::Values("nccl_double", "nccl_double_old"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace cinch::testing
