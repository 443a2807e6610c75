// Plans over MPI: every rank's update equals the sequential oracle's, bit for bit; after a rank
// fails, a new session in the same process works. Ranks that are threads: ../plans_test.cpp.
#include <gtest/gtest.h>

#include "tests/collective/mpi/rank.h"
#include "tests/collective/support/plan_cases.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

TEST(MpiSync, PlansGiveWhatTheOracleGives) {
  const auto transport = rt::open_transport({.is_exact = true});
  const auto combinations = combinations_over("mpi", transport->world());
  ASSERT_FALSE(combinations.empty());
  run_combinations(*transport, combinations);
  RecordProperty("combinations", static_cast<int>(combinations.size()));
}

TEST(MpiSync, GroupsGiveWhatTheOracleGives) {
  const auto transport = rt::open_transport({.is_exact = true});
  const SyncCase one_case = grouped_case(transport->world());
  check_digests(one_case, *transport, wanted_digests(one_case), "groups");
}

// As many ranks as tests are launched with, by CMakeLists.txt.
TEST(MpiSync, EveryNumberOfRanksIsLaunched) {
  if (is_sample_run()) GTEST_SKIP() << "a sample of them";
  EXPECT_EQ(std::vector<std::uint32_t>(std::begin(kWorlds), std::end(kWorlds)),
            (std::vector<std::uint32_t>{MPI_LAUNCHES}));
}

TEST(MpiSync, RanksThatDifferAreNamed) {
  auto transport = rt::open_transport();
  const SyncCase subject = subject_of("", "two_shot", transport->world());
  const auto session = rt::SyncSession::open(
      {.plan = subject.plan, .threads = 1, .seed = transport->rank() == 0 ? 1U : 2U}, *transport);
  if (transport->world() == 1) return;
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().message.find("rank 0 has "), std::string::npos)
      << session.error().message;
}

// Rank 1 gives up after opening: the others hear of it then or in the step.
std::string error_of_a_step(const SyncCase& subject, rt::Transport& transport) {
  auto session = rt::SyncSession::open(sync_options(subject, transport.rank()), transport);
  if (!session) return session.error().message;
  if (transport.rank() == 1) {
    transport.abandon({rt::ErrorKind::Cancelled, "the user has had enough"});
  }
  Tensors update;
  const auto gradients = make_gradients(*subject.plan, transport.rank(), 0);
  const rt::Status status = step_on(**session, gradients, update, 0);
  return status ? "" : status.error().message;
}

TEST(MpiSync, ANewSessionFollowsAFailedOne) {
  auto transport = rt::open_transport();
  if (transport->world() == 1) GTEST_SKIP() << "one rank";
  const SyncCase subject = subject_of("onebit", "two_shot", transport->world());
  const std::string message = error_of_a_step(subject, *transport);
  EXPECT_NE(message.find("rank 1 gave up: the user has had enough"), std::string::npos) << message;
  transport.reset();
  transport = rt::open_transport();
  check_digests(subject, *transport, wanted_digests(subject), "after a failure");
}

}  // namespace
}  // namespace cinch::testing
