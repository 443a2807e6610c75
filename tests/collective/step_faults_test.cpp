// Every fault of one rank in every kind of exchange, over every transport whose ranks are threads:
// all ranks have an error in time, and fewer ranks go on in the same process. Over MPI:
// mpi/sync_test.cpp.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/collective/callback_transport.h"
#include "tests/collective/nccl/double_world.h"
#include "tests/collective/step_faults.h"
#include "tests/unit/runtime/collective/lending_host.h"

namespace cinch::testing {
namespace {

using Leave = std::function<void()>;
using Body = std::function<void(rt::Transport&, const Leave&)>;

void run_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& rank) {
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < world; ++r) threads.emplace_back(rank, r);
  for (std::thread& thread : threads) thread.join();
}

void run_on_links(std::uint32_t world, const rt::LinkShape& shape, const Body& body) {
  rt::LoopbackWorld ranks(world, shape);
  run_threads(world, [&](std::uint32_t rank) {
    auto transport = ranks.transport(rank);
    body(*transport, [&] { transport.reset(); });
  });
}

void run_on_loopback(std::uint32_t world, const Body& body) {
  run_on_links(world, {}, body);
}

void run_on_shaped(std::uint32_t world, const Body& body) {
  run_on_links(world, {2e-4, 5e7}, body);
}

void run_on_callback(std::uint32_t world, const Body& body) {
  rt::LoopbackWorld ranks(world);
  run_threads(world, [&](std::uint32_t rank) {
    auto inner = ranks.transport(rank);
    rt::LendingHost host(*inner);
    auto transport = rt::make_callback_transport(host.calls());
    ASSERT_TRUE(transport) << transport.error().message;
    body(**transport, [&] {
      transport->reset();
      inner.reset();
    });
  });
}

void run_on_nccl(std::uint32_t world, const Body& body) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  const auto id = rt::make_nccl_id(library.file);
  ASSERT_TRUE(id) << id.error().message;
  const auto neighbours = std::make_shared<rt::NcclNeighbours>();
  run_threads(world, [&](std::uint32_t rank) {
    rt::NcclOptions options;
    options.library = library.file;
    options.device = library.device(rank);
    options.neighbours = neighbours;
    auto transport = rt::open_nccl_transport(*id, rank, world, options);
    ASSERT_TRUE(transport) << transport.error().message;
    body(**transport, [&] { transport->reset(); });
  });
  EXPECT_EQ(library.wrong_uses(), "");
}

struct World {
  const char* name;
  void (*run)(std::uint32_t, const Body&);
  bool names_silent_ranks;  // does it know whom an exchange waits for?
  bool finds_faults;        // of size, and ranks that have gone; else it hangs
};
constexpr World kWorlds[] = {{"loopback", run_on_loopback, true, true},
                             {"shaped", run_on_shaped, true, true},
                             {"callback", run_on_callback, false, true},
                             {"nccl", run_on_nccl, false, false}};
constexpr FaultKind kFaults[] = {FaultKind::Fails, FaultKind::FailsLater, FaultKind::Dies,
                                 FaultKind::Hangs, FaultKind::OtherSize,  FaultKind::Garbage};

// What is added up or is no payload may be anything.
bool is_found(const StepFault& fault) {
  if (fault.kind != FaultKind::Garbage) return true;
  return fault.exchange == rt::ExchangeKind::Receive ||
         fault.exchange == rt::ExchangeKind::AllGather ||
         fault.exchange == rt::ExchangeKind::AllToAll;
}

class EachTransport : public ::testing::TestWithParam<std::tuple<World, FaultKind>> {};

TEST_P(EachTransport, EndsTheStepOnAllRanks) {
  const auto& [world, kind] = GetParam();
  const bool is_found_out = kind == FaultKind::OtherSize || kind == FaultKind::Dies;
  const bool is_silent = kind == FaultKind::Hangs || (is_found_out && !world.finds_faults);
  for (const rt::ExchangeKind exchange : kExchangeKinds) {
    const StepFault fault{kind, exchange};
    if (!is_found(fault)) continue;
    SyncCase one_case = case_with(exchange, 3);
    if (is_silent) one_case.timeout = std::chrono::milliseconds(1000);
    std::vector<rt::Error> errors(3);
    world.run(3, [&](rt::Transport& transport, const Leave& leave) {
      const std::uint32_t rank = transport.rank();  // it may be gone afterwards
      errors[rank] = error_of_fault(one_case, transport, fault, leave);
    });
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      check_error(errors[rank], fault, rank, !is_silent || world.names_silent_ranks);
    }
    world.run(2, [](rt::Transport& transport, const Leave&) { check_new_session(transport); });
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(StepFaults, EachTransport,
                         ::testing::Combine(::testing::ValuesIn(kWorlds),
                                            ::testing::ValuesIn(kFaults)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" +
                                  fault_kind_name(std::get<1>(each.param));
                         });

}  // namespace
}  // namespace cinch::testing
