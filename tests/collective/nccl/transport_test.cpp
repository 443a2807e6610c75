// Requirements for every transport, over the fake of NCCL: memory of the host and of devices,
// versions that lack calls, communicators of the caller.
#include <atomic>
#include <latch>
#include <thread>

#include "tests/collective/nccl/double_world.h"
#include "tests/unit/runtime/collective/transport_checks.h"

#include "runtime/core/lang.h"
#include "runtime/transports/nccl/nccl_abi.h"

namespace cinch::testing {
namespace {

using namespace rt;

struct Variant {
  std::uint32_t world = 1;
  std::string library = "nccl_double";
  bool is_exact = false;
};

class EachNccl : public ::testing::TestWithParam<Variant> {
 protected:
  void run(const std::function<void(Transport&)>& body) {
    NcclOptions options;
    options.is_exact = GetParam().is_exact;
    run_nccl_ranks(library, GetParam().world, body, options);
  }
  const NcclDouble& library = NcclDouble::open(GetParam().library);
};

TEST_P(EachNccl, ExchangesEverything) {
  run([](Transport& transport) {
    EXPECT_EQ(transport.name(), "nccl");
    check_everything(transport);
  });
}

TEST_P(EachNccl, ExchangesEverythingOnDevices) {
  run([this](Transport& transport) {
    OnDeviceTransport moved = on_device(transport, library);
    check_everything(moved);
  });
}

INSTANTIATE_TEST_SUITE_P(Nccl, EachNccl,
                         ::testing::Values(Variant{1}, Variant{2}, Variant{3}, Variant{4},
                                           Variant{5}, Variant{8}, Variant{3, "nccl_double", true},
                                           Variant{3, "nccl_double_old"},
                                           Variant{4, "nccl_double_old", true}),
                         [](const auto& tested) {
                           const Variant& variant = tested.param;
                           return std::to_string(variant.world) +
                                  (variant.library == "nccl_double" ? "_ranks" : "_ranks_old") +
                                  (variant.is_exact ? "_exact" : "");
                         });

TEST(Nccl, AddsFloatsInRankOrderOnlyWhereItSaysSo) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  NcclOptions options;
  options.is_exact = true;
  run_nccl_ranks(
      library, 5,
      [&](Transport& transport) {
        EXPECT_TRUE(transport.sums_in_rank_order());
        check_sums_in_rank_order(transport);
        OnDeviceTransport moved = on_device(transport, library);
        check_sums_in_rank_order(moved);
      },
      options);
  run_nccl_ranks(library, 2,
                 [](Transport& transport) { EXPECT_FALSE(transport.sums_in_rank_order()); });
}

std::vector<ByteRange> parts_of(std::uint64_t bytes, std::uint32_t world, bool is_reversed) {
  std::vector<ByteRange> parts;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    parts.push_back({(is_reversed ? world - 1 - rank : rank) * (bytes + 4), bytes});
  }
  return parts;
}

// Equal parts use calls of NCCL, which know no gaps and no other order; bytes between parts must
// stay as they are.
TEST(Nccl, PartsLieWhereTheyLike) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  run_nccl_ranks(library, 3, [&](Transport& inner) {
    OnDeviceTransport moved = on_device(inner, library);
    for (Transport* transport : {&inner, static_cast<Transport*>(&moved)}) {
      const std::uint32_t rank = transport->rank();
      const auto parts = parts_of(8, 3, rank == 1);  // each rank its own
      std::vector<std::uint8_t> all(36, 99), own(8, static_cast<std::uint8_t>(rank));
      Exchange gather{ExchangeKind::AllGather};
      gather.input = own;
      gather.output = all;
      gather.received = parts;
      run_exchange(*transport, gather);
      for (std::uint32_t from = 0; from < 3; ++from) {
        for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(all[parts[from].offset + i], from);
        for (std::size_t i = 8; i < 12; ++i) ASSERT_EQ(all[parts[from].offset + i], 99);
      }
      std::vector<std::int32_t> values(9), sums(2);
      for (std::uint32_t to = 0; to < 3; ++to) {
        values[parts[to].offset / 4] = values[parts[to].offset / 4 + 1] =
            static_cast<std::int32_t>(10 * to + rank);
      }
      Exchange scatter{ExchangeKind::ReduceScatter};
      scatter.reduction = RankReduction::Sum;
      scatter.dtype = kI32;
      scatter.input = bytes_of(values);
      scatter.output = rt::room_of(sums);
      scatter.sent = parts;
      run_exchange(*transport, scatter);
      EXPECT_EQ(sums, std::vector<std::int32_t>(2, static_cast<std::int32_t>(30 * rank + 3)));
    }
  });
}

// Elements for which NCCL has no type, or that it joins differently.
TEST(Nccl, JoinsWhatTheLibraryCannot) {
  for (const char* name : {"nccl_double", "nccl_double_old"}) {
    run_nccl_ranks(NcclDouble::open(name), 4, [](Transport& transport) {
      check_all_reduce<std::int16_t>(transport, kI16, 1001);
      for (const DType half : {kF16, kBF16}) {
        const auto stored = [&](float value) {
          return half == kF16 ? lang::to_f16(value) : lang::to_bf16(value);
        };
        std::vector<lang::u16> values(999, stored(0.5f + static_cast<float>(transport.rank())));
        Exchange exchange{ExchangeKind::AllReduce};
        exchange.reduction = RankReduction::Sum;
        exchange.dtype = half;
        exchange.input = bytes_of(values);
        exchange.output = rt::room_of(values);
        run_exchange(transport, exchange);
        ASSERT_EQ(values, std::vector<lang::u16>(999, stored(8)));
        exchange.reduction = RankReduction::Mean;
        run_exchange(transport, exchange);
        ASSERT_EQ(values, std::vector<lang::u16>(999, stored(8)));
      }
      // NaNs and zeros of either sign as we order them.
      std::vector<float> values(10, transport.rank() % 2 == 0 ? -0.0f : 0.0f);
      Exchange exchange{ExchangeKind::AllReduce};
      exchange.reduction = RankReduction::Max;
      exchange.input = bytes_of(values);
      exchange.output = rt::room_of(values);
      run_exchange(transport, exchange);
      ASSERT_FALSE(std::signbit(values[0]));
    });
  }
}

// A message delays only those behind it, in whatever order ranks start them.
TEST(Nccl, MessagesAndCollectivesDoNotWaitForEachOther) {
  run_nccl_ranks(NcclDouble::open("nccl_double"), 2, [](Transport& transport) {
    const std::uint32_t other = 1 - transport.rank();
    std::vector<std::uint8_t> in(100000), out(100000, static_cast<std::uint8_t>(other));
    std::vector<float> values(1000, 1);
    Exchange receive{ExchangeKind::Receive, other}, send{ExchangeKind::Send, other};
    receive.output = in;
    send.input = out;
    Exchange reduce{ExchangeKind::AllReduce};
    reduce.reduction = RankReduction::Sum;
    reduce.input = bytes_of(values);
    reduce.output = rt::room_of(values);
    const auto coming = transport.start(receive);
    ASSERT_TRUE(coming) << coming.error().message;
    // Submitted to NCCL before anything else is started.
    bool has_come = false;
    for (int i = 0; i < 20 && !has_come; ++i) {
      has_come = *transport.test(*coming);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    const auto reducing = transport.start(reduce);
    const auto going = transport.start(send);
    ASSERT_TRUE(reducing && going);
    std::vector<Ticket> waited{*going, *reducing};
    if (!has_come) waited.push_back(*coming);
    for (const Ticket ticket : waited) {
      const Status status = wait_for(transport, ticket, kPatience);
      ASSERT_TRUE(status) << status.error().message;
    }
    EXPECT_EQ(in,
              std::vector<std::uint8_t>(in.size(), static_cast<std::uint8_t>(transport.rank())));
    EXPECT_EQ(values[0], 2);
  });
}

// Joined here or by NCCL, waited for in any order.
TEST(Nccl, ManyCollectivesAreUnderWay) {
  constexpr std::size_t kMany = 12;
  run_nccl_ranks(NcclDouble::open("nccl_double"), 3, [&](Transport& transport) {
    std::vector<std::vector<float>> values;
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < kMany; ++i) values.emplace_back(1000 * i, static_cast<float>(i));
    for (std::size_t i = 0; i < kMany; ++i) {
      Exchange exchange{ExchangeKind::AllReduce};
      exchange.reduction = i % 3 == 0 ? RankReduction::Max : RankReduction::Sum;
      exchange.input = bytes_of(values[i]);
      exchange.output = rt::room_of(values[i]);
      const auto ticket = transport.start(exchange);
      ASSERT_TRUE(ticket) << ticket.error().message;
      tickets.push_back(*ticket);
    }
    for (std::size_t i = kMany; i-- > 0;) {
      const Status status = wait_for(transport, tickets[i], kPatience);
      ASSERT_TRUE(status) << status.error().message;
      const auto wanted = static_cast<float>(i % 3 == 0 ? i : 3 * i);
      ASSERT_EQ(values[i], std::vector<float>(1000 * i, wanted)) << i;
    }
  });
}

// Host memory, too, may still be written when the exchange is started.
TEST(Nccl, HostMemoryIsReadWhenItIsThere) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  run_nccl_ranks(library, 2, [&](Transport& transport) {
    const auto device = library.device(transport.rank());
    const GpuDevice::Scope scope(*device);
    GpuStream stream = nullptr;
    ASSERT_EQ(device->driver().stream_create(&stream, kGpuStreamNonBlocking), kGpuSuccess);
    std::vector<float> values(100, 7);
    Exchange exchange{ExchangeKind::AllReduce};
    exchange.reduction = RankReduction::Sum;
    exchange.input = bytes_of(values);
    exchange.output = rt::room_of(values);
    exchange.after = stream;
    library.sleep(stream, 60);
    const auto ticket = transport.start(exchange);
    ASSERT_TRUE(ticket) << ticket.error().message;
    EXPECT_FALSE(*transport.test(*ticket));
    std::ranges::fill(values, 1.0f);
    const Status status = wait_for(transport, *ticket, kPatience);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(values, std::vector<float>(100, 2));
    device->driver().stream_destroy(stream);
  });
}

TEST(Nccl, CountsWhatItSends) {
  run_nccl_ranks(NcclDouble::open("nccl_double"), 4, [](Transport& transport) {
    check_all_reduce<float>(transport, kF32, 4000);
    EXPECT_EQ(transport.sent_bytes(), 2u * 3 * 4000);
  });
}

TEST(Nccl, RegistersMemoryOnce) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  const std::uint64_t before = library.num_registrations();
  run_nccl_ranks(library, 2, [](Transport& transport) {
    for (int i = 0; i < 50; ++i) check_all_reduce<float>(transport, kF32, 4000);
  });
  EXPECT_EQ(library.num_registrations() - before, 2u);  // of each rank
}

TEST(Nccl, RefusesWhatDoesNotFit) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  run_nccl_ranks(library, 1, [](Transport& transport) {
    std::vector<std::uint8_t> bytes(10);
    Exchange message{ExchangeKind::Send, 1};
    EXPECT_FALSE(transport.start(message));
    Exchange reduce{ExchangeKind::AllReduce};
    reduce.input = reduce.output = bytes;
    EXPECT_FALSE(transport.start(reduce));  // no reduction
    reduce.reduction = RankReduction::Sum;
    reduce.dtype = kU8;
    reduce.place = MemoryPlace::Device;
    const auto refused = transport.start(reduce);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("is not memory of a GPU"), std::string::npos)
        << refused.error().message;
    EXPECT_FALSE(transport.test(Ticket{7}));
    reduce.place = MemoryPlace::Host;
    run_exchange(transport, reduce);  // nothing has broken it
  });
}

TEST(NcclLibrary, SaysWhatIsMissing) {
  const auto none = open_nccl_library("/nowhere.so");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(none.error().message.find("no NCCL: /nowhere.so"), 0u) << none.error().message;
  const auto other = open_nccl_library("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("has no ncclGetVersion: NCCL 2.7 or newer is needed"),
            std::string::npos)
      << other.error().message;
  EXPECT_FALSE(make_nccl_id("/nowhere.so"));
  EXPECT_FALSE(open_nccl_transport(NcclId{}, 0, 1, {.library = "/nowhere.so"}));
}

TEST(NcclLibrary, ReadsVersions) {
  EXPECT_EQ(nccl_version_text(23003), "2.30.3");
  EXPECT_EQ(nccl_version_text(2804), "2.8.4");
  const auto old = open_nccl_library(NcclDouble::open("nccl_double_old").file);
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ((*old)->version, 2804);
  EXPECT_EQ((*old)->init_rank_config, nullptr);
}

TEST(NcclOpening, RefusesRanksThatAreNoWorld) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  const auto id = make_nccl_id(library.file);
  NcclOptions options;
  options.library = library.file;
  EXPECT_FALSE(open_nccl_transport(*id, 0, 1, options));  // no device
  options.device = library.device(0);
  EXPECT_FALSE(open_nccl_transport(*id, 2, 2, options));
  const auto unknown = open_nccl_transport(NcclId{}, 0, 1, options);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "NCCL, opening a communicator: invalid argument (an id of no library)");
}

TEST(NcclOpening, WaitsForRanksOnlySoLong) {
  for (const char* name : {"nccl_double", "nccl_double_old"}) {
    const NcclDouble& library = NcclDouble::open(name);
    NcclOptions options;
    options.library = library.file;
    options.device = library.device(0);
    options.timeout = std::chrono::milliseconds(50);
    const auto late = open_nccl_transport(*make_nccl_id(library.file), 0, 2, options);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind, ErrorKind::TimedOut);
    EXPECT_EQ(late.error().message, "not all 2 ranks have come within 50 ms");
    EXPECT_EQ(library.wrong_uses(), "");
  }
}

TEST(NcclOpening, TwoRanksOnOneDeviceAreTheLibrarysBusiness) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  const auto id = make_nccl_id(library.file);
  NcclOptions options;
  options.library = library.file;
  options.device = library.device(0);
  options.timeout = std::chrono::milliseconds(500);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto opened = open_nccl_transport(*id, rank, 2, options);
      if (!opened) errors[rank] = opened.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) {
    EXPECT_EQ(error.find("NCCL, opening a communicator: invalid usage"), 0u) << error;
  }
  EXPECT_EQ(library.wrong_uses(), "");
}

TEST(NcclOpening, UsesACommunicatorThatIsLent) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  const NcclCalls& calls = **open_nccl_library(library.file);
  NcclUniqueId id{};
  ASSERT_EQ(calls.get_unique_id(&id), kNcclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto device = library.device(static_cast<std::uint32_t>(rank));
      const GpuDevice::Scope scope(*device);
      NcclComm comm = nullptr;
      ASSERT_EQ(calls.init_rank(&comm, 3, id, rank), kNcclSuccess);
      for (int i = 0; i < 2; ++i) {
        NcclOptions options;
        options.library = library.file;
        options.device = device;
        const auto transport = open_nccl_transport(comm, options);
        ASSERT_TRUE(transport) << transport.error().message;
        EXPECT_EQ((*transport)->rank(), static_cast<std::uint32_t>(rank));
        check_everything(**transport);
      }
      EXPECT_EQ(calls.destroy(comm), kNcclSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(library.wrong_uses(), "");
}

// Its owner goes on using it: none of its work was under way.
TEST(NcclOpening, WhoGivesUpLeavesNothingInACommunicatorThatIsLent) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  const NcclCalls& calls = **open_nccl_library(library.file);
  NcclUniqueId id{};
  ASSERT_EQ(calls.get_unique_id(&id), kNcclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      NcclOptions options;
      options.library = library.file;
      options.device = library.device(static_cast<std::uint32_t>(rank));
      const GpuDevice::Scope scope(*options.device);
      NcclComm comm = nullptr;
      ASSERT_EQ(calls.init_rank(&comm, 2, id, rank), kNcclSuccess);
      auto transport = open_nccl_transport(comm, options);
      ASSERT_TRUE(transport) << transport.error().message;
      check_all_reduce<float>(**transport, kF32, 4000);
      std::vector<std::uint8_t> bytes(100);
      Exchange missing{ExchangeKind::Receive, static_cast<std::uint32_t>(1 - rank)};
      missing.output = bytes;
      EXPECT_FALSE(exchange_now(**transport, missing, std::chrono::milliseconds(100), "alone"));
      transport->reset();
      EXPECT_EQ(calls.destroy(comm), kNcclSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(library.wrong_uses(), "");
}

std::atomic<int> g_num_queries{0};

GpuCode count_query(GpuEvent event) {
  ++g_num_queries;
  return NcclDouble::open("nccl_double").driver->event_query(event);
}

// A caller that tests one exchange after the other does not advance all of them each time.
TEST(Nccl, AskingForManyLooksAtEachOnce) {
  constexpr std::size_t kMany = 60, kRounds = 10;
  static GpuDriver driver = *NcclDouble::open("nccl_double").driver;
  driver.event_query = count_query;
  NcclDouble counted = NcclDouble::open("nccl_double");
  counted.driver = &driver;
  std::latch has_counted(1);
  run_nccl_ranks(counted, 2, [&](Transport& transport) {
    const bool sends = transport.rank() == 1;
    std::vector<std::vector<std::uint8_t>> bytes(kMany, std::vector<std::uint8_t>(10, 1));
    std::vector<Ticket> tickets;
    check_messages(transport, 50);  // opens the ways
    if (sends) has_counted.wait();
    for (std::vector<std::uint8_t>& each : bytes) {
      Exchange exchange{sends ? ExchangeKind::Send : ExchangeKind::Receive, 1 - transport.rank()};
      exchange.input = exchange.output = each;
      const auto ticket = transport.start(exchange);
      ASSERT_TRUE(ticket) << ticket.error().message;
      tickets.push_back(*ticket);
    }
    if (!sends) {
      for (std::size_t i = 0; i < 10 * kMany; ++i) EXPECT_FALSE(*transport.test(tickets[0]));
      const int before = g_num_queries;  // all run
      for (std::size_t i = 0; i < kRounds * kMany; ++i) {
        EXPECT_FALSE(*transport.test(tickets[i % kMany]));
      }
      const int num_queries = g_num_queries - before;
      EXPECT_GE(num_queries, static_cast<int>(kMany));
      EXPECT_LT(num_queries, static_cast<int>(kRounds * kMany * kMany / 4));
      has_counted.count_down();
    }
    for (const Ticket ticket : tickets) {
      const Status status = wait_for(transport, ticket, kPatience);
      ASSERT_TRUE(status) << status.error().message;
    }
  });
}

}  // namespace
}  // namespace cinch::testing
