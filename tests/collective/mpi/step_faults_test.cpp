// Every fault of one rank in every kind of exchange, over MPI: all ranks get an error in time, and
// go on in the same processes. Ranks that are threads: ../step_faults_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "tests/collective/mpi/rank.h"
#include "tests/collective/support/step_faults.h"
#include "tests/environment.h"
#include "tests/time_bound.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::testing {
namespace {

constexpr std::chrono::milliseconds kShort{1000};
constexpr unsigned kMostSeconds = 60;

// Nobody is notified: the others find out by their time-outs.
bool is_silent(FaultKind kind) {
  return kind == FaultKind::Hangs || kind == FaultKind::Stops || kind == FaultKind::Killed;
}

SyncCase case_of(const StepFault& fault, std::uint32_t world, DType summed) {
  SyncCase one_case = case_with(fault.exchange, world, summed);
  if (is_silent(fault.kind)) one_case.timeout = kShort;
  return one_case;
}

// MPI does not tell which ranks its own collectives wait for. In the program with a reduce-scatter,
// such a collective follows it.
bool names_rank(const StepFault& fault, DType summed) {
  const bool is_of_mpi = fault.exchange == rt::ExchangeKind::Broadcast ||
                         fault.exchange == rt::ExchangeKind::ReduceScatter ||
                         (fault.exchange == rt::ExchangeKind::AllReduce && summed == kF32);
  return !is_of_mpi || !is_silent(fault.kind);
}

// Rank 0 knows it then.
std::int64_t process_of_rank_1(rt::Transport& transport) {
  std::vector<std::int64_t> process{::getpid()};
  rt::Exchange message{rt::ExchangeKind::Send, 0};
  if (transport.rank() == 0) message = {rt::ExchangeKind::Receive, 1};
  message.input = rt::bytes_of(process);
  message.output = rt::room_of(process);
  if (transport.rank() < 2) rt::run_exchange(transport, message);
  return process[0];
}

// MPI adds f32; we add f16.
void check_fault(const StepFault& fault, DType summed) {
  const TimeBound bound(kMostSeconds, fault.text());
  auto transport = rt::open_transport();
  const std::uint32_t rank = transport->rank(), world = transport->world();
  const std::int64_t process = process_of_rank_1(*transport);
  const rt::Error error =
      error_of_fault(case_of(fault, world, summed), *transport, fault, [&] { transport.reset(); });
  if (rank == 0 && fault.kind == FaultKind::Stops) ::kill(static_cast<pid_t>(process), SIGCONT);
  check_error(error, fault, rank, names_rank(fault, summed));
  transport.reset();
  if (!::testing::Test::HasFailure()) check_new_session(*rt::open_transport());
  // The launcher would end the other ranks, whose tests would then fail.
  if (::testing::Test::HasFailure()) std::_Exit(1);
}

class MpiStepFaults : public ::testing::TestWithParam<FaultKind> {};

TEST_P(MpiStepFaults, EndTheStepOnAllRanks) {
  const std::uint32_t world = rt::open_transport()->world();
  if (world == 1) GTEST_SKIP() << "one rank";
  if (world != 3 && !is_long_run()) GTEST_SKIP() << "with three ranks, or in a long run";
  for (const rt::ExchangeKind exchange : kExchangeKinds) {
    const StepFault fault{GetParam(), exchange};
    // As with deaths: one exchange made of messages, and one that is MPI's.
    const bool is_everyday = fault.kind != FaultKind::Stops ||
                             exchange == rt::ExchangeKind::AllToAll ||
                             exchange == rt::ExchangeKind::Broadcast;
    if (!is_found(fault) || !(is_everyday || is_long_run())) continue;
    check_fault(fault, kF32);
    if (exchange == rt::ExchangeKind::AllReduce) check_fault(fault, kF16);
  }
}

INSTANTIATE_TEST_SUITE_P(StepFaults, MpiStepFaults, ::testing::ValuesIn(kStepFaults),
                         [](const auto& each) { return fault_kind_name(each.param); });
INSTANTIATE_TEST_SUITE_P(ProcessFaults, MpiStepFaults, ::testing::Values(FaultKind::Stops),
                         [](const auto& each) { return fault_kind_name(each.param); });

// deaths.py starts this and counts what survivors print: afterwards no rank of the launch can open
// another transport.
TEST(MpiDeath, IsFoundByTheOthers) {
  const std::string_view name = ::getenv("CINCH_DEATH_IN") ? ::getenv("CINCH_DEATH_IN") : "";
  const auto* const exchange = std::ranges::find(kExchangeKinds, name, rt::exchange_kind_name);
  if (exchange == std::ranges::end(kExchangeKinds)) GTEST_SKIP() << "CINCH_DEATH_IN names no kind";
  const StepFault fault{FaultKind::Killed, *exchange};
  const TimeBound bound(kMostSeconds, fault.text());
  auto transport = rt::open_transport();
  const std::uint32_t rank = transport->rank();
  const rt::Error error =
      error_of_fault(case_of(fault, transport->world(), kF32), *transport, fault, [] {});
  check_error(error, fault, rank, names_rank(fault, kF32));
  transport.reset();
  if (!HasFailure()) std::printf("rank %u has found it\n", rank);
}

}  // namespace
}  // namespace cinch::testing
