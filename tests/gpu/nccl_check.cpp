// nccl_check [--share] [--ask]: the transport over NCCL itself, a rank for each GPU; with --share
// two ranks on the first one. With --ask nothing is exchanged: says whether that can be tried here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/transports/nccl/nccl_abi.h"
#include "runtime/transports/nccl/nccl_transport.h"
#include "tests/collective/nccl/on_device_transport.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::rt {
namespace {

constexpr int kFirstWithSharedGpus = 23000;

struct Machine {
  const GpuDriver* driver = nullptr;
  std::uint32_t num_gpus = 1, world = 1;
};
Machine g_machine;

using Body = std::function<void(Transport&, const std::shared_ptr<const GpuDevice>&)>;

void run_ranks(NcclOptions options, const Body& body) {
  const auto id = make_nccl_id();
  ASSERT_TRUE(id) << id.error().message;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < g_machine.world; ++rank) {
    threads.emplace_back([&, rank, options]() mutable {
      const auto ordinal = static_cast<int>(rank % g_machine.num_gpus);
      const auto device = GpuDevice::open(*g_machine.driver, ordinal);
      ASSERT_TRUE(device) << device.error().message;
      options.device = *device;
      const auto transport = open_nccl_transport(*id, rank, g_machine.world, options);
      ASSERT_TRUE(transport) << transport.error().message;
      body(**transport, *device);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NcclOnGpus, ExchangesMemoryOfTheHost) {
  run_ranks({}, [](Transport& transport, const auto&) { check_everything(transport); });
}

TEST(NcclOnGpus, ExchangesMemoryOfDevices) {
  run_ranks({}, [](Transport& transport, const auto& device) {
    // Delays the write of the exchanged data.
    auto filled = GpuMemory::allocate(device, std::size_t{64} << 20);
    ASSERT_TRUE(filled) << filled.error().message;
    testing::OnDeviceTransport moved(transport, device, [&](GpuStream stream) {
      for (int i = 0; i < 4; ++i) {
        device->driver().fill(filled->address(), 1, filled->size_bytes(), stream);
      }
    });
    check_everything(moved);
  });
}

TEST(NcclOnGpus, AddsInRankOrder) {
  NcclOptions options;
  options.is_exact = true;
  run_ranks(options, [](Transport& transport, const auto&) {
    check_everything(transport);
    check_sums_in_rank_order(transport);
  });
}

// Nobody waits longer than its time-out, and a new world works.
TEST(NcclOnGpus, GivesUpInTime) {
  if (g_machine.world == 1) GTEST_SKIP() << "one rank";
  run_ranks({}, [](Transport& transport, const auto&) {
    check_all_reduce<float>(transport, kF32, 1000);  // all have opened by then
    check_messages(transport, 1000);
    std::vector<std::uint8_t> bytes(1000);
    Exchange missing{ExchangeKind::Receive,
                     (transport.rank() + transport.world() - 1) % transport.world()};
    missing.output = bytes;
    const auto ticket = transport.start(missing);  // nobody sends
    ASSERT_TRUE(ticket) << ticket.error().message;
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100)) {
      const auto has_come = transport.test(*ticket);
      ASSERT_FALSE(has_come && *has_come);
    }
    if (transport.rank() == 1) return transport.abandon({ErrorKind::Io, "its disk is full"});
    std::vector<float> values(100000, 1);
    Exchange exchange{ExchangeKind::AllReduce};
    exchange.reduction = RankReduction::Sum;
    exchange.input = bytes_of(values);
    exchange.output = room_of(values);
    EXPECT_FALSE(exchange_now(transport, exchange, std::chrono::milliseconds(2000), "alone"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(6));
  });
  run_ranks({}, [](Transport& transport, const auto&) {
    check_all_reduce<float>(transport, kF32, 100000);
    check_messages(transport, 1000);
  });
}

// What is there, or what is missing.
Result<std::string> look_at_machine(bool shares) {
  const auto version = nccl_library_version();
  if (!version) return tl::unexpected<Error>(version.error());
  const auto driver = open_cuda_driver();
  if (!driver) return tl::unexpected<Error>(driver.error());
  int count = 0;
  GpuCode code = (*driver)->init(0);
  if (code == kGpuSuccess) code = (*driver)->device_count(&count);
  if (Status status = gpu_status(**driver, code, "counting devices"); !status) {
    return tl::unexpected<Error>(status.error());
  }
  if (count == 0) return fail(ErrorKind::Unavailable, "the CUDA driver lists no device");
  const std::string text = nccl_version_text(*version);
  if (shares && *version < kFirstWithSharedGpus) {
    return fail(ErrorKind::Unavailable,
                fmt::format("NCCL {} lets no two ranks share a GPU, 2.30 does", text));
  }
  g_machine = {*driver, static_cast<std::uint32_t>(shares ? 1 : count),
               static_cast<std::uint32_t>(shares ? 2 : count)};
  return fmt::format("NCCL {}, {} ranks on {} GPUs", text, g_machine.world, g_machine.num_gpus);
}

}  // namespace
}  // namespace cinch::rt

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  bool shares = false, asks = false;
  for (int i = 1; i < argc; ++i) {
    shares = shares || std::strcmp(argv[i], "--share") == 0;
    asks = asks || std::strcmp(argv[i], "--ask") == 0;
  }
  if (shares) ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  const auto machine = cinch::rt::look_at_machine(shares);
  fmt::print("{}\n", machine ? *machine : machine.error().message);
  if (!machine || asks) return machine ? 0 : 1;
  return RUN_ALL_TESTS();
}
