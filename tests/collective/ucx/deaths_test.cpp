// One of three ranks is killed, or stopped, in the middle of a step: the others name it in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/collective/support/step_faults.h"
#include "tests/collective/ucx/open_rank.h"
#include "tests/time_bound.h"

namespace cinch::testing {
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
  one_case.timeout = std::chrono::milliseconds(2000);
  const rt::Error error = error_of_fault(one_case, *transport, fault, [] {});
  check_error(error, fault, rank, true);
  transport.reset();
  if (HasFailure()) return;
  std::printf("rank %u has found it: %s\n", rank, error.message.c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace cinch::testing
