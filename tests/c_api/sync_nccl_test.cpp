// Ranks of the C API that meet over the fake of NCCL, each on an emulated GPU of its own: from a
// shared id, and over a communicator of the caller's.
#include <gmock/gmock.h>

#include "runtime/transports/nccl/nccl_abi.h"
#include "sync_ranks.h"
#include "tests/collective/nccl/double_world.h"

namespace cinch::testing {
namespace {

const ComputingDouble& gpus() {
  static const ComputingDouble kStarted;
  return kStarted;
}

}  // namespace
}  // namespace cinch::testing

namespace cinch::c_api {

// Its calls may come from any thread, so ranks do not take turns.
rt::Result<const rt::GpuDriver*> gpu_driver() {
  static const rt::GpuDriver kDriver = [] {
    rt::GpuDriver made = *testing::gpus().library().driver;
    made.allocates_apart = false;
    return made;
  }();
  return &kDriver;
}

}  // namespace cinch::c_api

namespace cinch::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Id = std::array<char, CINCH_NCCL_ID_BYTES>;

cinch_nccl_options options_of(std::uint32_t rank) {
  auto options = sized<cinch_nccl_options>();
  options.device_number = static_cast<std::int32_t>(rank);
  options.is_exact = 1;
  options.library = gpus().library().file.c_str();
  return options;
}

Id shared_id() {
  Id id{};
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_OK, cinch_nccl_make_id(gpus().library().file.c_str(), id.data(), &error))
      << error.message;
  return id;
}

RanksRun run_from_id(const RanksCase& wanted) {
  const Id id = shared_id();
  return run_ranks(
      wanted, [&](std::uint32_t rank, cinch_transport** transport, cinch_error* error) {
        const auto options = options_of(rank);
        return cinch_transport_of_nccl(id.data(), rank, kWorld, &options, transport, error);
      });
}

RanksCase case_on_gpus(const Program& program, const char* plan) {
  return {.devices = {CINCH_CUDA, CINCH_CUDA},
          .programs = {program.get(), program.get()},
          .plan = plan,
          .has_own_gpus = true};
}

TEST(CApiSyncNccl, RanksFromASharedIdGiveWhatThoseOnCpusGive) {
  const Program cpu = compile_for(CINCH_CPU), gpu = compile_for(CINCH_CUDA);
  for (const char* plan : {"two_shot", "allgather", "ring"}) {
    const RanksRun wanted = run_on_loopback({.programs = {cpu.get(), cpu.get()}, .plan = plan});
    const RanksRun run = run_from_id(case_on_gpus(gpu, plan));
    EXPECT_THAT(run.errors, Each("")) << plan;
    EXPECT_EQ(run.updates, wanted.updates) << plan;
  }
  EXPECT_EQ(gpus().library().wrong_uses(), "");
}

// One more step copies no more from the host than the tables of its launches.
TEST(CApiSyncNccl, NothingOfAStepLeavesTheGpus) {
  const Program gpu = compile_for(CINCH_CUDA, "fp16");
  RanksCase wanted = case_on_gpus(gpu, "two_shot");
  wanted.sizes = {200000, 1000};
  const auto copied_in = [&wanted](std::uint64_t num_steps) {
    wanted.num_steps = num_steps;
    const std::uint64_t before = gpus().num_copied_bytes();
    EXPECT_THAT(run_from_id(wanted).errors, Each(""));
    return gpus().num_copied_bytes() - before;
  };
  const std::uint64_t once = copied_in(1), twice = copied_in(2);
  EXPECT_LT(twice - once, 2 * wanted.sizes[0]) << "a message of one rank";
}

// The caller's own communicator, made as a framework would, which the caller uses further
// afterwards.
TEST(CApiSyncNccl, RanksOverCommunicatorsOfTheCaller) {
  const Program cpu = compile_for(CINCH_CPU), gpu = compile_for(CINCH_CUDA);
  const RanksRun wanted = run_on_loopback({.programs = {cpu.get(), cpu.get()}});
  const rt::NcclCalls& nccl = **rt::open_nccl_library(gpus().library().file);
  rt::NcclUniqueId id{};
  ASSERT_EQ(nccl.get_unique_id(&id), rt::kNcclSuccess);
  std::array<rt::NcclComm, kWorld> comms{};
  const RanksRun run = run_ranks(case_on_gpus(gpu, "two_shot"), [&](std::uint32_t rank,
                                                                    cinch_transport** transport,
                                                                    cinch_error* error) {
    const auto device = *rt::GpuDevice::open(**c_api::gpu_driver(), static_cast<int>(rank));
    const rt::GpuDevice::Scope scope(*device);
    EXPECT_EQ(nccl.init_rank(&comms[rank], kWorld, id, static_cast<int>(rank)), rt::kNcclSuccess);
    auto options = options_of(rank);
    options.device_number = static_cast<std::int32_t>(1 - rank);
    EXPECT_EQ(CINCH_INVALID_ARGUMENT,
              cinch_transport_of_nccl_comm(comms[rank], &options, transport, error));
    EXPECT_THAT(error->message, HasSubstr("a communicator of GPU"));
    options.device_number = static_cast<std::int32_t>(rank);
    return cinch_transport_of_nccl_comm(comms[rank], &options, transport, error);
  });
  EXPECT_THAT(run.errors, Each(""));
  EXPECT_EQ(run.updates, wanted.updates);
  for (const rt::NcclComm comm : comms) EXPECT_EQ(nccl.destroy(comm), rt::kNcclSuccess);
  EXPECT_EQ(gpus().library().wrong_uses(), "");
}

TEST(CApiSyncNccl, RanksThatDoNotComeAreTimedOut) {
  const Id id = shared_id();
  auto options = options_of(0);
  options.timeout_ms = 100;
  cinch_transport* transport = nullptr;
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_TIMED_OUT,
            cinch_transport_of_nccl(id.data(), 0, kWorld, &options, &transport, &error))
      << error.message;
  EXPECT_EQ(transport, nullptr);
}

TEST(CApiSyncNccl, WhatCannotBeIsAnError) {
  const Id id = shared_id();
  auto options = options_of(0);
  cinch_transport* transport = nullptr;
  auto error = sized<cinch_error>();
  const auto open = [&](const void* with, std::uint32_t rank) {
    return cinch_transport_of_nccl(with, rank, kWorld, &options, &transport, &error);
  };
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, open(nullptr, 0));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, open(id.data(), kWorld));
  EXPECT_THAT(error.message, HasSubstr("rank 2 of 2"));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_transport_of_nccl_comm(nullptr, &options, &transport, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_nccl_make_id(options.library, nullptr, &error));
  options.device_number = 99;
  EXPECT_EQ(CINCH_UNAVAILABLE, open(id.data(), 0));
  options.device_number = 0;
  options.library = "/nowhere/libnccl.so.2";
  EXPECT_EQ(CINCH_UNAVAILABLE, open(id.data(), 0));
  EXPECT_THAT(error.message, HasSubstr("no NCCL"));
  options.struct_size = sizeof(std::size_t);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, open(id.data(), 0));
  EXPECT_EQ(transport, nullptr);
}

}  // namespace
}  // namespace cinch::testing
