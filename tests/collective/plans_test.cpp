// Compressor x plan x ranks x sizes: every rank's update is that of the sequential oracle, bit for
// bit. A sample that covers all pairs of values; CINCH_LONG=1 takes all combinations.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/core/same_bits.h"
#include "runtime/plan/check_plan.h"
#include "runtime/planner/codec_facts.h"
#include "tests/collective/sync_oracle.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

struct Combination {
  std::string program;  // empty: none
  std::string plan;
  std::uint32_t world = 1;
  std::int64_t size = 0;
  std::uint64_t piece_bytes = 4096;
  rt::LengthPolicy lengths = rt::LengthPolicy::Padded;

  std::string text() const {
    return (program.empty() ? "dense" : program) + ", " + plan + ", " + std::to_string(world) +
           " ranks, " + std::to_string(size) + " elements, pieces of " +
           std::to_string(piece_bytes) + " bytes";
  }
};

const std::string kPrograms[] = {"",
                                 "onebit",
                                 "ef_sign",
                                 "signsgd",
                                 "topk(ratio: 0.1)",
                                 "threshold(tau: 0.5)",
                                 "qsgd",
                                 "randomk(ratio: 0.2)",
                                 "momentum(error_feedback(minmax))",
                                 "terngrad_shared"};
constexpr std::uint32_t kWorlds[] = {1, 2, 3, 4, 5, 8};
// 0, 1, ranks - 1, odd, large.
std::vector<std::int64_t> sizes_for(std::uint32_t world) {
  return {0, 1, static_cast<std::int64_t>(world) - 1, 333, 20000};
}
constexpr std::uint64_t kPieceBytes[] = {1024, 16384};
constexpr rt::LengthPolicy kPolicies[] = {rt::LengthPolicy::Padded, rt::LengthPolicy::Exchanged};

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const std::string& program : kPrograms) {
    for (const std::string_view plan : rt::plan_names()) {
      for (const std::uint32_t world : kWorlds) {
        for (const std::int64_t size : sizes_for(world)) {
          for (const std::uint64_t bytes : kPieceBytes) {
            for (const rt::LengthPolicy lengths : kPolicies) {
              all.push_back({program, std::string(plan), world, size, bytes, lengths});
            }
          }
        }
      }
    }
  }
  return all;
}

// Greedy: combinations, in an order drawn once, that show a pair of values not seen before.
std::vector<Combination> covering_combinations() {
  std::vector<Combination> all = all_combinations(), chosen;
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
  SyncCase made;
  rt::PlanRequest request;
  request.plan = one.plan;
  request.world = one.world;
  request.piece_bytes = one.piece_bytes;
  request.lengths = one.lengths;
  const std::uint32_t codec = one.program.empty() ? rt::kDense : 0;
  if (!one.program.empty()) {
    made.programs = {compiled_library(one.program)};
    request.codecs = {rt::codec_facts(made.programs[0], one.world)};
  }
  request.tensors = {{"large", one.size, 1, codec},
                     {"bias", 7, 1, rt::kDense},
                     {"small", 40, 1, codec},
                     {"smaller", 3, 2, codec}};
  const auto plan = rt::build_plan(request);
  EXPECT_TRUE(plan) << plan.error().message;
  made.plan = std::make_shared<rt::Plan>(*plan);
  return made;
}

bool are_same(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return same_bits(x, y); });
}

void check_steps(const SyncCase& one_case, const std::string& text) {
  const rt::Status sound = rt::check_plan(*one_case.plan);
  ASSERT_TRUE(sound) << text << ": " << sound.error().message;
  const auto results = run_steps(one_case);
  SyncOracle oracle(*one_case.plan, one_case.programs, one_case.seed);
  for (std::uint64_t step = 0; step < results.size(); ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      gradients.push_back(make_gradients(*one_case.plan, rank, step));
    }
    const Tensors wanted = oracle.step(gradients, step);
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      ASSERT_EQ(results[step].errors[rank], "") << text << ", step " << step << ", rank " << rank;
      ASSERT_TRUE(are_same(results[step].updates[rank], wanted))
          << text << ", step " << step << ", rank " << rank;
    }
  }
}

TEST(Plans, GiveWhatTheOracleGives) {
  const auto combinations = is_long_run() ? all_combinations() : covering_combinations();
  for (const Combination& one : combinations) {
    check_steps(case_of(one), one.text());
    if (HasFatalFailure()) return;
  }
  RecordProperty("combinations", static_cast<int>(combinations.size()));
}

TEST(Plans, GiveTheSameOverSlowLinks) {
  for (const std::string_view plan : rt::plan_names()) {
    SyncCase slow = case_of(
        {"topk(ratio: 0.1)", std::string(plan), 3, 20000, 8192, rt::LengthPolicy::Exchanged});
    slow.shape = {2e-4, 5e7};
    check_steps(slow, std::string(plan));
  }
}

TEST(Plans, SynchroniseMatrices) {
  for (const std::uint32_t world : {1, 3}) {
    SyncCase matrices;
    matrices.programs = {compiled_library("powersgd(rank: 2)")};
    rt::PlanRequest request;
    request.plan = "two_shot";
    request.world = world;
    request.codecs = {rt::codec_facts(matrices.programs[0], world)};
    request.tensors = {{"a", 30, 20, 0}, {"bias", 20, 1, rt::kDense}, {"b", 8, 40, 0}};
    matrices.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
    check_steps(matrices, "powersgd");
  }
}

TEST(Plans, TakeTheGradientsMemoryAsUpdates) {
  for (const std::string_view name : rt::plan_names()) {
    const SyncCase one_case = case_of({"ef_sign", std::string(name), 2, 333, 1024});
    const auto wanted = run_steps(one_case);
    rt::LoopbackWorld world(2);
    run_ranks(world, 2, [&](const RankBody& own) {
      auto session = rt::SyncSession::open({.plan = one_case.plan,
                                            .programs = one_case.programs,
                                            .threads = 1,
                                            .seed = one_case.seed},
                                           own.transport);
      ASSERT_TRUE(session) << session.error().message;
      Tensors values = make_gradients(*one_case.plan, own.rank, 0);
      const std::vector<rt::ConstTensorView> from(values.begin(), values.end());
      const std::vector<rt::TensorView> to(values.begin(), values.end());
      ASSERT_TRUE((*session)->step(from, to, 0));
      EXPECT_TRUE(are_same(values, wanted[0].updates[own.rank])) << name;
    });
  }
}

}  // namespace
}  // namespace cinch::testing
