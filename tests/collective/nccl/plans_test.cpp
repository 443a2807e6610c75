// Plans over the fake of NCCL: after calls that fail or hang all ranks get an error, and a new
// session works, with the updates of the sequential oracle. Every plan: ../plans_test.cpp.
#include <gtest/gtest.h>

#include "runtime/planner/planner.h"
#include "tests/collective/nccl/double_world.h"
#include "tests/collective/support/sync_oracle.h"

namespace cinch::testing {
namespace {

constexpr std::uint64_t kSeed = 17;

SyncCase subject_of(const std::string& program, std::string_view plan, std::uint32_t world) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.piece_bytes = 16384;
  request.tensors = {{"large", 20001, 1, 0}, {"bias", 7, 1, rt::kDense}, {"small", 40, 1, 0}};
  return make_sync_case(program.empty() ? nullptr : compiled_library(program), request);
}

// The error of one step after two; empty: none.
std::string run_steps(const SyncCase& subject, rt::Transport& transport, const Tensors& wanted,
                      std::chrono::milliseconds timeout) {
  auto session = rt::SyncSession::open({.plan = subject.plan,
                                        .programs = subject.programs,
                                        .threads = 1,
                                        .seed = kSeed,
                                        .timeout = timeout},
                                       transport);
  if (!session) return session.error().message;
  Tensors update;
  for (std::uint64_t step = 0; step < 2; ++step) {
    const auto gradients = make_gradients(*subject.plan, transport.rank(), step);
    const rt::Status status = step_on(**session, gradients, update, step);
    if (!status) return status.error().message;
  }
  return are_same(update, wanted) ? "" : "another update than the oracle's";
}

Tensors oracle_of(const SyncCase& subject) {
  SyncOracle oracle(*subject.plan, subject.programs, kSeed);
  Tensors wanted;
  for (std::uint64_t step = 0; step < 2; ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < subject.plan->world(); ++rank) {
      gradients.push_back(make_gradients(*subject.plan, rank, step));
    }
    wanted = oracle.step(gradients, step);
  }
  return wanted;
}

std::vector<std::string> errors_of(const SyncCase& subject,
                                   std::chrono::milliseconds timeout = rt::SyncOptions{}.timeout) {
  const Tensors wanted = oracle_of(subject);
  rt::NcclOptions options;
  options.is_exact = true;
  std::vector<std::string> errors(subject.plan->world());
  run_nccl_ranks(
      NcclDouble::open("nccl_double"), subject.plan->world(),
      [&](rt::Transport& transport) {
        errors[transport.rank()] = run_steps(subject, transport, wanted, timeout);
      },
      options);
  return errors;
}

TEST(NcclSync, ANewSessionFollowsAFailedOne) {
  const SyncCase subject = subject_of("onebit", "two_shot", 3);
  for (const int fault : {kDoubleFails, kDoubleFailsLater, kDoubleHangs}) {
    for (const std::uint64_t call : {1, 5, 9}) {
      NcclDouble::open("nccl_double").plant(1, fault, call);
      for (const std::string& error : errors_of(subject, std::chrono::milliseconds(500))) {
        EXPECT_NE(error, "") << fault << " at " << call;
      }
    }
  }
  for (const std::string& error : errors_of(subject)) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace cinch::testing
