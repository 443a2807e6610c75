// Every fault of one rank in every kind of exchange, over every transport whose ranks are threads:
// all ranks get an error in time, and fewer ranks go on in the same process. Over MPI:
// mpi/step_faults_test.cpp.
#include <gtest/gtest.h>

#include "tests/collective/support/step_faults.h"
#include "tests/collective/support/thread_worlds.h"
#include "tests/environment.h"
#include "tests/time_bound.h"

namespace cinch::testing {
namespace {

class EachTransport : public ::testing::TestWithParam<std::tuple<ThreadWorld, FaultKind>> {};

TEST_P(EachTransport, EndsTheStepOnAllRanks) {
  const auto& [world, kind] = GetParam();
  const bool is_found_out = kind == FaultKind::OtherSize || kind == FaultKind::Dies;
  const bool is_silent = kind == FaultKind::Hangs || (is_found_out && !world.finds_faults);
  // Each kind of fault in every second exchange, in turns; a long run takes all.
  auto number = static_cast<std::size_t>(kind);
  for (const rt::ExchangeKind exchange : kExchangeKinds) {
    const StepFault fault{kind, exchange};
    if (!is_found(fault)) continue;
    if (!is_long_run() && number++ % 2 == 1) continue;
    const TimeBound bound(120, std::string(world.name) + ", " + fault.text());
    SyncCase one_case = case_with(exchange, 3);
    if (is_silent) one_case.timeout = std::chrono::milliseconds(1000);
    std::vector<rt::Error> errors(3);
    world.run(
        3,
        [&](rt::Transport& transport, const Leave& leave) {
          const std::uint32_t rank = transport.rank();  // it may be gone afterwards
          errors[rank] = error_of_fault(one_case, transport, fault, leave);
        },
        Sums::Library);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      check_error(errors[rank], fault, rank, !is_silent || world.names_silent_ranks);
    }
    world.run(
        2, [](rt::Transport& transport, const Leave&) { check_new_session(transport); },
        Sums::Library);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(StepFaults, EachTransport,
                         ::testing::Combine(::testing::ValuesIn(thread_worlds()),
                                            ::testing::ValuesIn(kStepFaults)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" +
                                  fault_kind_name(std::get<1>(each.param));
                         });

}  // namespace
}  // namespace cinch::testing
