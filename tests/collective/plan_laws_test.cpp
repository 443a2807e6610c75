// A plan never changes the algorithm: over many steps the updates of every plan add up to what
// those of allgather add up to, where no sum is encoded again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "runtime/core/numbers/floats.h"
#include "tests/collective/support/sync_ranks.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

constexpr std::uint64_t kSteps = 30;
constexpr std::int64_t kElements = 3000;

struct LawCase {
  const char* program;
  double tolerance;  // of the gain, relative to that by allgather
};

// Programs that another plan changed once, and compositions of them. What unbiased programs add up
// to differs by their noise, what residuals hold by a step's worth.
constexpr LawCase kLawCases[] = {
    {"dgc(ratio: 1, masking: false)", 1e-4},
    {"dgc(ratio: 0.25)", 0.1},
    {"momentum(topk(ratio: 0.25))", 0.05},
    {"nesterov(int4_block)", 0.03},
    {"dist_ef_sgdm", 0.02},
    {"ef21(topk(ratio: 0.25))", 0.1},
    {"ef21_sgdm(topk(ratio: 0.25))", 0.15},
    {"scaled(qsgd)", 0.05},
    {"scale_unbiased(natural, variance: 0.125)", 0.02},
    {"randomk(ratio: 0.1)", 0.02},
    {"randomk_block(ratio: 0.1)", 0.02},
    {"randomk_unbiased(ratio: 0.25)", 0.02},
    {"error_feedback(randomk(ratio: 0.1))", 0.05},
    {"randomk_own(ratio: 0.1)", 0.1},
    {"adaq", 0.1},
    {"drive", 0.05},
    {"warmup(dgc(ratio: 0.25), epoch: 2)", 0.1},
    {"clip(dgc(ratio: 0.25), norm: 1000)", 0.1},
    {"local_steps(topk(ratio: 0.25), every: 3)", 0.1},
    {"local_steps(randomk(ratio: 0.25), every: 3)", 0.1},
    {"correct_every(topk(ratio: 0.25), every: 3)", 0.1},
    {"ef14(topk(ratio: 0.25))", 0.1},
    {"momentum(randomk(ratio: 0.25))", 0.02},
    {"nesterov(randomk_block(ratio: 0.25))", 0.02},
    {"two_way(randomk(ratio: 0.25))", 0.05},
    {"scaled(randomk_unbiased(ratio: 0.25), factor: 0.25)", 0.02},
    {"clip(momentum(randomk(ratio: 0.25)), norm: 1000)", 0.02},
    {"error_feedback(onebit)", 0.1},
    {"signum", 0.05},
    {"signsgd(tie_is_zero: true)", 1e-6},
    {"demo", 1e-6},
};

// ⟨sum of all updates, g⟩ / (steps ⟨g, g⟩): 1 for the mean, 10 for momentum of 0.9 in the long run.
double gain(const char* program, const std::string& plan, std::uint32_t world) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.tensors = {{"all", kElements, 1, 0}};  // too small to be cut: the same piece by all plans
  SyncCase one = make_sync_case(compiled_library(program), request);
  one.num_steps = kSteps;
  const std::vector<float> gradient = make_gradients(*one.plan, 0, 0)[0];
  // Ranks' gradients differ, and their mean is the same in every step.
  one.change_gradients = [&](std::uint32_t rank, std::uint64_t, Tensors& all) {
    const float share = 2 * static_cast<float>(rank + 1) / static_cast<float>(world + 1);
    for (std::size_t i = 0; i < gradient.size(); ++i) all[0][i] = share * gradient[i];
  };
  std::vector<double> sum(gradient.size());
  for (const StepResult& step : run_steps(one)) {
    EXPECT_EQ(step.errors[0], "") << program << " by " << plan;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += step.updates[0][0][i];
  }
  const double along = std::inner_product(sum.begin(), sum.end(), gradient.begin(), 0.0);
  const double length = std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
  return along / (static_cast<double>(kSteps) * length);
}

bool takes(const char* program, const std::string& plan, std::uint32_t world) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.tensors = {{"all", kElements, 1, 0}};
  Programs programs = {compiled_library(program)};
  request.codecs = facts_of(programs, world);
  const auto plan_of = rt::build_plan_if_taken(request);
  EXPECT_TRUE(plan_of) << plan_of.error().message;
  return plan_of && *plan_of;
}

TEST(PlanLaws, EveryPlanTrainsWhatAllgatherTrains) {
  constexpr std::uint32_t kWorlds[] = {2, 3, 5};
  std::size_t number = 0;
  for (const LawCase& each : kLawCases) {
    if (is_sample_run() && number > 0) break;
    const auto program = static_cast<std::size_t>(&each - std::data(kLawCases));
    std::map<std::uint32_t, double> by_allgather;
    for (const char* plan : {"two_shot", "ring", "ps", "tree", "hierarchical", "allreduce"}) {
      ++number;
      for (std::size_t w = 0; w < std::size(kWorlds); ++w) {
        const std::uint32_t world = kWorlds[w];
        // Every second plan of a program, each with one number of ranks, in turns; a long run takes
        // all.
        if (!is_long_run() && ((number + program) % 2 == 0 || number % std::size(kWorlds) != w))
          continue;
        if (!takes(each.program, plan, world)) {
          EXPECT_TRUE(plan == std::string("ring") || plan == std::string("tree"))
              << each.program << " does not take " << plan;
          continue;
        }
        if (!by_allgather.contains(world))
          by_allgather[world] = gain(each.program, "allgather", world);
        const double wanted = by_allgather[world], found = gain(each.program, plan, world);
        EXPECT_NEAR(found, wanted, each.tolerance * std::abs(wanted) + 1e-3)
            << each.program << " by " << plan << ", " << world << " ranks";
      }
    }
  }
}

// Sums whose mean fits: four ranks with 40,000 have a sum beyond f16.
TEST(PlanLaws, SumsOfNarrowFloatsFitWhereTheMeanDoes) {
  for (const char* program : {"fp16", "fp8"}) {
    const float value = program == std::string("fp8") ? 400.0f : 40000.0f;
    for (const char* plan : {"allreduce", "allgather", "two_shot", "ring", "tree", "ps"}) {
      rt::PlanRequest request;
      request.plan = plan;
      request.world = 4;
      request.tensors = {{"all", 100, 1, 0}};
      SyncCase one = make_sync_case(compiled_library(program), request);
      one.change_gradients = [&](std::uint32_t, std::uint64_t, Tensors& all) {
        std::ranges::fill(all[0], value);
      };
      for (const StepResult& step : run_steps(one)) {
        ASSERT_EQ(step.errors[0], "") << program << " by " << plan;
        for (const float update : step.updates[0][0])
          ASSERT_NEAR(update, value, 0.04 * value) << program << " by " << plan;
      }
    }
  }
}

}  // namespace
}  // namespace cinch::testing
