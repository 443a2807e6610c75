// Requirements for every transport, and plans compared with the sequential oracle, with processes
// as ranks.
#include <gtest/gtest.h>

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
}  // namespace cinch::testing
