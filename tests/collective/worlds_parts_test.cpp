// Steps in parts and reduce-scatter over every transport whose ranks are threads: tensors become
// ready in a different order on each rank, and parts are uneven or empty; results have the
// sequential oracle's bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/collective/support/sync_oracle.h"
#include "tests/collective/support/thread_worlds.h"
#include "tests/time_bound.h"

namespace cinch::testing {
namespace {

constexpr std::uint32_t kRanks = 3;
constexpr std::uint64_t kSteps = 2;

SyncCase case_by(std::string_view plan) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = kRanks;
  request.piece_bytes = 8192;
  request.tensors = {
      {"fc1", 5001, 1, 0}, {"bias", 11, 1, rt::kDense}, {"none", 0, 1, 0}, {"fc2", 700, 1, 0}};
  if (plan == "routes") {
    request.routes = {{.plan = "ring", .piece_bytes = 8192},
                      {.plan = "two_shot", .device = rt::OptionDevice::Cpu},
                      {.plan = "allgather", .lengths = rt::LengthPolicy::Exchanged}};
    request.route_of = {0, 1, 1, 2};
  }
  if (plan == "reduce_scatter") {
    request.tensors[0].part_ends = {17, 17, 5001};
    request.tensors[1].part_ends = {0, 11, 11};
  }
  SyncCase made = make_sync_case(compiled_library("ef_sign"), request);
  made.timeout = std::chrono::milliseconds(20000);
  return made;
}

void take_step(rt::SyncSession& session, const SyncCase& one_case, std::uint32_t rank,
               std::uint64_t step, Tensors& updates) {
  const Tensors gradients = gradients_of(one_case, rank, step);
  for (const rt::PlanTensor& tensor : one_case.plan->tensors) {
    updates.emplace_back(static_cast<std::size_t>(rt::updated_part(tensor, rank).num_elems));
  }
  std::vector<std::uint32_t> order(gradients.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::shuffle(order, std::mt19937_64(10 * step + rank));
  ASSERT_TRUE(session.begin_step(step));
  for (const std::uint32_t tensor : order) {
    const rt::Status status = session.set_ready(tensor, gradients[tensor], updates[tensor]);
    ASSERT_TRUE(status) << status.error().message;
  }
  const auto outcome = session.finish_step();
  ASSERT_TRUE(outcome) << outcome.error().message;
}

// The ranks' parts of the update, put together.
Tensors whole_of(const SyncCase& one_case, const std::vector<std::vector<Tensors>>& found,
                 std::uint64_t step) {
  if (one_case.plan->name != "reduce_scatter") return found[0][step];
  Tensors whole(one_case.plan->tensors.size());
  for (const auto& rank : found) {
    for (std::size_t t = 0; t < whole.size(); ++t) {
      whole[t].insert(whole[t].end(), rank[step][t].begin(), rank[step][t].end());
    }
  }
  return whole;
}

class PartsOverTransport : public ::testing::TestWithParam<ThreadWorld> {};

TEST_P(PartsOverTransport, GiveTheOraclesBits) {
  const ThreadWorld& world = GetParam();
  for (const std::string_view plan : {"two_shot", "reduce_scatter", "routes"}) {
    const TimeBound bound(120, std::string(world.name) + ", " + std::string(plan));
    const SyncCase one_case = case_by(plan);
    std::vector<std::vector<Tensors>> found(kRanks, std::vector<Tensors>(kSteps));
    world.run(
        kRanks,
        [&](rt::Transport& transport, const Leave&) {
          const std::uint32_t rank = transport.rank();
          const auto session = rt::SyncSession::open(sync_options(one_case, rank), transport);
          ASSERT_TRUE(session) << session.error().message;
          for (std::uint64_t step = 0; step < kSteps; ++step) {
            take_step(**session, one_case, rank, step, found[rank][step]);
          }
        },
        Sums::RankOrder);
    if (HasFailure()) return;
    SyncOracle oracle(*one_case.plan, one_case.programs, one_case.seed);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      std::vector<Tensors> gradients;
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        gradients.push_back(gradients_of(one_case, rank, step));
      }
      EXPECT_TRUE(are_same(whole_of(one_case, found, step), oracle.step(gradients, step)))
          << plan << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, PartsOverTransport, ::testing::ValuesIn(thread_worlds()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace cinch::testing
