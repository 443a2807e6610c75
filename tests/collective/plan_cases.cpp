// Bodies of plan_cases.h.
#include "tests/collective/plan_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/plan/check_plan.h"
#include "tests/collective/sync_oracle.h"

namespace cinch::testing {

std::string Combination::text() const {
  return (program.empty() ? "dense" : program) + ", " + plan + ", " + std::to_string(world) +
         " ranks, " + std::to_string(size) + " elements, pieces of " + std::to_string(piece_bytes) +
         " bytes";
}

// Greedy: combinations, in an order drawn once, that show a pair of values not seen before.
std::vector<Combination> covering_combinations(std::vector<Combination> all) {
  std::vector<Combination> chosen;
  std::ranges::shuffle(all, std::mt19937(7));
  std::set<std::pair<std::string, std::string>> seen;
  for (const Combination& one : all) {
    const std::string values[] = {"p " + one.program,
                                  "l " + one.plan,
                                  "w " + std::to_string(one.world),
                                  "s " + std::to_string(one.size),
                                  "b " + std::to_string(one.piece_bytes),
                                  "n " + std::to_string(static_cast<int>(one.lengths))};
    const std::size_t before = seen.size();
    for (const auto& a : values) {
      for (const auto& b : values) {
        if (a < b) seen.emplace(a, b);
      }
    }
    if (seen.size() > before) chosen.push_back(one);
  }
  return chosen;
}

SyncCase case_of(const Combination& one) {
  rt::PlanRequest request;
  request.plan = one.plan;
  request.world = one.world;
  request.piece_bytes = one.piece_bytes;
  request.lengths = one.lengths;
  request.tensors = {{"large", one.size, 1, 0},
                     {"bias", 7, 1, rt::kDense},
                     {"small", 40, 1, 0},
                     {"smaller", 3, 2, 0}};
  return make_sync_case(one.program.empty() ? nullptr : compiled_library(one.program), request);
}

void check_steps(const SyncCase& one_case, const std::string& text,
                 std::uint32_t ranks_per_machine) {
  const rt::Status sound = rt::check_plan(*one_case.plan);
  ASSERT_TRUE(sound) << text << ": " << sound.error().message;
  const auto results = run_steps(one_case);
  SyncOracle oracle(*one_case.plan, one_case.programs, one_case.seed, ranks_per_machine);
  for (std::uint64_t step = 0; step < results.size(); ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      gradients.push_back(gradients_of(one_case, rank, step));
    }
    const Tensors wanted = oracle.step(gradients, step);
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      ASSERT_EQ(results[step].errors[rank], "") << text << ", step " << step << ", rank " << rank;
      ASSERT_TRUE(are_same(results[step].updates[rank], wanted))
          << text << ", step " << step << ", rank " << rank;
    }
  }
}

}  // namespace cinch::testing
