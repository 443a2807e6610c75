// Requirements for every transport, and plans compared with the sequential oracle, with processes
// as ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/collective/support/plan_cases.h"
#include "tests/collective/support/step_faults.h"
#include "tests/collective/ucx/open_rank.h"
#include "tests/time_bound.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::testing {
namespace {

TEST(UcxRanks, ExchangeEverything) {
  const auto transport = open_rank();
  EXPECT_EQ(transport->world(), number_from("WORLD_SIZE", 1));
  rt::check_everything(*transport);
  rt::check_sums_in_rank_order(*transport);
}

TEST(UcxRanks, PlansGiveWhatTheOracleGives) {
  const auto transport = open_rank();
  auto combinations = combinations_over("ucx_processes", transport->world());
  ASSERT_FALSE(combinations.empty());
  // Each process compiles its programs itself; threads run all combinations.
  constexpr std::size_t kFew = 12;
  if (!is_long_run() && combinations.size() > kFew) combinations.resize(kFew);
  run_combinations(*transport, combinations);
}

// A rank that gives up or leaves in a step, and a new session in the same processes.
TEST(UcxRanks, FaultsEndTheStep) {
  const auto world = static_cast<std::uint32_t>(number_from("WORLD_SIZE", 1));
  if (world == 1) return;
  for (const FaultKind kind : {FaultKind::Fails, FaultKind::Dies, FaultKind::OtherSize}) {
    const StepFault fault{kind, rt::ExchangeKind::AllToAll};
    const TimeBound bound(60, fault.text());
    auto transport = open_rank();
    const std::uint32_t rank = transport->rank();
    const rt::Error error = error_of_fault(case_with(fault.exchange, world), *transport, fault,
                                           [&] { transport.reset(); });
    check_error(error, fault, rank, true);
    transport.reset();
    if (!::testing::Test::HasFailure()) check_new_session(*open_rank());
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace

// One of three ranks is killed, or stopped, in the middle of a step: the others name it in time.

namespace {

// launches.py counts what survivors print.
TEST(UcxDeath, IsFoundByTheOthers) {
  constexpr unsigned kMostSeconds = 60;
  const std::string name = text_from("CINCH_DEATH_IN");
  const auto* const exchange = std::ranges::find(kExchangeKinds, name, rt::exchange_kind_name);
  if (exchange == std::ranges::end(kExchangeKinds)) GTEST_SKIP() << "CINCH_DEATH_IN names no kind";
  const bool is_stopped = text_from("CINCH_DEATH_BY") == "stop";
  const StepFault fault{is_stopped ? FaultKind::Stops : FaultKind::Killed, *exchange};
  const TimeBound bound(kMostSeconds, fault.text());
  auto transport = open_rank();
  const std::uint32_t rank = transport->rank();
  SyncCase one_case = case_with(fault.exchange, transport->world());
  // The end of a process is noticed without a time-out, though launches.py does not wait for it.
  one_case.timeout = std::chrono::milliseconds(is_stopped ? 2000 : 50000);
  const rt::Error error = error_of_fault(one_case, *transport, fault, [] {});
  check_error(error, fault, rank, true);
  EXPECT_EQ(error.kind == rt::ErrorKind::TimedOut, is_stopped) << error.message;
  transport.reset();
  if (HasFailure()) return;
  std::printf("rank %u has found it: %s\n", rank, error.message.c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace cinch::testing
