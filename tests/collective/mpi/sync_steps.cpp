// Steps over MPI against the oracle; see rank.h.
#include "tests/collective/mpi/rank.h"

#include <gtest/gtest.h>

#include "tests/collective/support/sync_oracle.h"

namespace cinch::testing {

SyncCase subject_of(const std::string& program, std::string_view plan, std::uint32_t world,
                    std::int64_t elements) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.piece_bytes = 16384;
  request.tensors = {{"large", elements, 1, 0}, {"bias", 7, 1, rt::kDense}, {"small", 40, 1, 0}};
  return make_sync_case(program.empty() ? nullptr : compiled_library(program), request);
}

void check_steps(const SyncCase& subject, rt::Transport& transport, const std::string& text) {
  auto session = rt::SyncSession::open(sync_options(subject, transport.rank()), transport);
  ASSERT_TRUE(session) << text << ": " << session.error().message;
  SyncOracle oracle(*subject.plan, subject.programs, subject.seed);
  for (std::uint64_t step = 0; step < subject.num_steps; ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < transport.world(); ++rank) {
      gradients.push_back(make_gradients(*subject.plan, rank, step));
    }
    Tensors update;
    const rt::Status status = step_on(**session, gradients[transport.rank()], update, step);
    ASSERT_TRUE(status) << text << ", step " << step << ": " << status.error().message;
    ASSERT_TRUE(are_same(update, oracle.step(gradients, step))) << text << ", step " << step;
  }
}

}  // namespace cinch::testing
