// The cheapest plan is found, whether it compresses or not, and the reason is given.
#include "runtime/planner/choose_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

CostCurve per_call_and_element(double seconds) {
  return {{{0, 1e-6}, {1e6, 1e-6 + 1e6 * seconds}}};
}

CodecSpeed all_calls(double seconds_per_element) {
  const CostCurve curve = per_call_and_element(seconds_per_element);
  return {curve, curve, curve, curve, curve, curve, 1};
}

CostInputs inputs_of(std::uint32_t world, const LinkShape& links, double codec) {
  CostInputs inputs;
  inputs.network = shaped_network(world, links);
  inputs.codecs = {all_calls(codec), all_calls(codec)};
  inputs.dense = all_calls(1e-10);
  inputs.clear = per_call_and_element(1e-10);
  return inputs;
}

// A codec with an eighth of the bytes, and one whose payloads have a bound of four bytes per
// element.
PlanRequest request_of(std::uint32_t world, std::uint32_t codec, std::int64_t elems = 1 << 22) {
  PlanRequest request;
  request.world = world;
  request.codecs = {{"eighth", true, false, true,
                     [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
                       return static_cast<std::uint64_t>(rows * cols) / 2 + 64;
                     }},
                    {"few", true, false, false,
                     [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
                       return static_cast<std::uint64_t>(rows * cols) * 4 + 64;
                     }}};
  request.tensors = {{"weights", elems, 1, codec}, {"bias", 100, 1, kDense}};
  return request;
}

PlanChoice choose(const PlanRequest& request, const CostInputs& inputs,
                  const ChoiceSpace& space = {}) {
  auto choice = choose_plan(request, inputs, space);
  EXPECT_TRUE(choice) << (choice ? "" : choice.error().message);
  return choice ? std::move(*choice) : PlanChoice();
}

constexpr LinkShape kSlow{50e-6, 125e6}, kFast{1e-7, 1e11};

TEST(ChoosePlan, CompressesOverSlowLinks) {
  const PlanChoice choice = choose(request_of(8, 0), inputs_of(8, kSlow, 1e-9));
  EXPECT_FALSE(choice.chosen.is_dense);
  EXPECT_EQ(choice.chosen.plan, "two_shot");
  EXPECT_TRUE(choice.reason.starts_with("dense ")) << choice.reason;
  EXPECT_TRUE(choice.reason.ends_with(": chosen")) << choice.reason;
}

TEST(ChoosePlan, DoesNotCompressWhereThatCostsMore) {
  const PlanChoice choice = choose(request_of(4, 0), inputs_of(4, kFast, 1e-8));
  EXPECT_TRUE(choice.chosen.is_dense);
  EXPECT_TRUE(choice.reason.starts_with("do not compress: it would cost ")) << choice.reason;
  EXPECT_NE(choice.reason.find(" ms more ("), std::string::npos) << choice.reason;
  const auto built = build_plan(request_of(request_of(4, 0), choice.chosen));
  ASSERT_TRUE(built);
  for (const Group& group : built->groups) EXPECT_EQ(group.codec, kDense);
}

// Among equally good plans the first one is chosen, even if it is dense.
TEST(ChoosePlan, SaysWhatCompressingWouldHardlySave) {
  PlanRequest request = request_of(2, 0, 1000);
  const LinkShape late{1, 1e9};
  const PlanChoice choice = choose(request, inputs_of(2, late, 1e-10));
  EXPECT_TRUE(choice.chosen.is_dense);
  EXPECT_TRUE(choice.reason.starts_with("do not compress: it would save only 0.0"))
      << choice.reason;
}

TEST(ChoosePlan, TakesTheCheapestAndSortsTheOthersBehindIt) {
  const PlanRequest request = request_of(4, 1);
  const CostInputs inputs = inputs_of(4, kSlow, 1e-9);
  const PlanChoice choice = choose(request, inputs);
  EXPECT_TRUE(std::ranges::is_sorted(choice.candidates, {},
                                     [](const PlanCandidate& c) { return c.cost.seconds; }));
  EXPECT_LE(choice.chosen.cost.seconds, 1.03 * choice.candidates[0].cost.seconds);
  for (const PlanCandidate& each : choice.candidates) {
    const auto cost = estimate_cost(plan_of(request_of(request, each)), inputs);
    ASSERT_TRUE(cost);
    EXPECT_EQ(cost->seconds, each.cost.seconds) << describe_candidate(each);
  }
}

TEST(ChoosePlan, CutsLargeTensorsSoThatLanesOverlap) {
  const PlanChoice choice = choose(request_of(4, 0), inputs_of(4, {1e-6, 125e6}, 2e-9));
  EXPECT_LT(choice.chosen.piece_bytes, 16u << 20);
  CostInputs inputs = inputs_of(4, {1e-6, 125e6}, 2e-9);
  for (CostCurve* curve : {&inputs.codecs[0].encode, &inputs.codecs[0].decode_add}) {
    for (Sample& sample : curve->samples) sample.seconds += 0.05;  // of each call
  }
  EXPECT_EQ(choose(request_of(4, 0), inputs).chosen.piece_bytes, 16u << 20);
}

TEST(ChoosePlan, SendsLengthsFirstWherePayloadsAreMuchShorterThanTheirBound) {
  CostInputs inputs = inputs_of(4, kSlow, 1e-9);
  inputs.codecs[1].used_share = 0.01;
  EXPECT_EQ(choose(request_of(4, 1), inputs).chosen.lengths, LengthPolicy::Exchanged);
  inputs.codecs[1].used_share = 1;
  ChoiceSpace space;
  space.may_be_dense = false;
  EXPECT_EQ(choose(request_of(4, 1), inputs, space).chosen.lengths, LengthPolicy::Padded);
}

TEST(ChoosePlan, TriesOnlyWhatDiffers) {
  const PlanChoice small = choose(request_of(4, 0, 1000), inputs_of(4, kSlow, 1e-9));
  // Five plans compressed (a transport cannot add the payloads), six dense.
  EXPECT_EQ(small.candidates.size(), 6u + 6u);
  EXPECT_EQ(std::ranges::count(small.candidates, std::string("hierarchical"), &PlanCandidate::plan),
            0);
  PlanRequest machines = request_of(4, 0, 1000);
  machines.ranks_per_machine = 2;
  EXPECT_EQ(choose(machines, inputs_of(4, kSlow, 1e-9)).candidates.size(), 7u + 7u);
  PlanRequest dense = request_of(4, kDense);
  const PlanChoice plain = choose(dense, inputs_of(4, kSlow, 1e-9));
  EXPECT_TRUE(std::ranges::all_of(plain.candidates, &PlanCandidate::is_dense));
  EXPECT_TRUE(plain.reason.ends_with(": chosen")) << plain.reason;
  ChoiceSpace space;
  space.may_be_dense = false;
  const PlanChoice always = choose(request_of(4, 0), inputs_of(4, kFast, 1e-8), space);
  EXPECT_FALSE(always.chosen.is_dense);
  EXPECT_TRUE(std::ranges::none_of(always.candidates, &PlanCandidate::is_dense));
}

// Neither partial sums, nor the mean instead of the program's own finish.
TEST(ChoosePlan, TriesOnlyWhatAProgramTakes) {
  PlanRequest request = request_of(4, 0);
  request.codecs[0].takes_partial_sums = false;
  const PlanChoice choice = choose(request, inputs_of(4, kFast, 1e-8));
  std::set<std::string> plans;
  for (const PlanCandidate& candidate : choice.candidates) {
    plans.insert(candidate.plan);
    EXPECT_FALSE(candidate.is_dense);
  }
  // allreduce adds the tensor without a codec.
  EXPECT_EQ(plans, (std::set<std::string>{"allgather", "allreduce", "two_shot", "ps"}));
}

TEST(ChoosePlan, AddsNoPayloadsWhoseSumMayOverflow) {
  PlanRequest request = request_of(4, 0);
  request.codecs[0].sum_arrays = [](std::int64_t rows,
                                    std::int64_t) -> Result<std::vector<SumArray>> {
    return std::vector<SumArray>{{kF16, RankReduction::Sum, rows + 1}};
  };
  const auto compressed = [&] {
    std::set<std::string> plans;
    for (const PlanCandidate& candidate : choose(request, inputs_of(4, kSlow, 1e-9)).candidates) {
      if (!candidate.is_dense) plans.insert(candidate.plan);
    }
    return plans;
  };
  const std::set<std::string> all = {"allreduce", "allgather", "two_shot", "ring", "ps", "tree"};
  EXPECT_EQ(compressed(), all);
  // Ranks send shares of the mean, which fit, if the program is linear.
  request.codecs[0].has_narrow_fields = request.codecs[0].is_linear = true;
  EXPECT_EQ(compressed(), all);
  request.codecs[0].is_linear = false;
  EXPECT_EQ(compressed(), (std::set<std::string>{"allgather", "two_shot", "ps"}));
}

TEST(ChoosePlan, SaysWhyItCannot) {
  EXPECT_FALSE(choose_plan(request_of(4, 0), inputs_of(3, kSlow, 1e-9)));
  PlanRequest request = request_of(4, 0);
  request.codecs[0].has_sync = true;
  EXPECT_FALSE(choose_plan(request, inputs_of(4, kSlow, 1e-9)));
}

TEST(ChoosePlan, TriesThoseThatPredictionsCannotTellApart) {
  const PlanChoice choice = choose(request_of(8, 0), inputs_of(8, kSlow, 1e-9));
  const std::vector<std::size_t> places = worth_trying(choice, 60);
  ASSERT_GT(places.size(), 1U);
  EXPECT_EQ(describe_candidate(choice.candidates[places[0]]), describe_candidate(choice.chosen));
  for (const std::size_t place : places) {
    EXPECT_LE(choice.candidates[place].cost.seconds, 1.5 * choice.candidates[0].cost.seconds);
    EXPECT_EQ(std::ranges::count(places, place), 1);
  }
  // Steps that take longer than there is time for.
  EXPECT_TRUE(worth_trying(choice, choice.chosen.cost.seconds).empty());
  EXPECT_TRUE(worth_trying(choice, 0).empty());
}

TEST(ChoosePlan, TakesTheFastestThatWasTried) {
  PlanChoice choice = choose(request_of(8, 0), inputs_of(8, kSlow, 1e-9));
  const std::string predicted = describe_candidate(choice.chosen);
  choose_tried(choice);
  EXPECT_EQ(describe_candidate(choice.chosen), predicted);
  const std::vector<std::size_t> places = worth_trying(choice, 60);
  ASSERT_GT(places.size(), 1U);
  choice.candidates[places[0]].tried_seconds = 2;
  choice.candidates[places[1]].tried_seconds = 1;
  const std::string fastest = describe_candidate(choice.candidates[places[1]]);
  choose_tried(choice);
  EXPECT_EQ(describe_candidate(choice.chosen), fastest);
  EXPECT_NE(choice.reason.find(fastest + ": "), std::string::npos) << choice.reason;
  EXPECT_TRUE(choice.reason.ends_with(" when tried: chosen")) << choice.reason;
}

TEST(ChoosePlan, TriesBothKindsWherePredictionsDoNotTellThemApart) {
  PlanChoice choice;
  for (int i = 0; i < 13; ++i) {
    PlanCandidate candidate;
    candidate.plan = "ring";
    candidate.piece_bytes = static_cast<std::uint64_t>(i + 1) << 10;
    candidate.is_dense = i < 12;
    candidate.cost.seconds = 1 + 0.01 * i;
    choice.candidates.push_back(candidate);
  }
  choice.chosen = choice.candidates[0];
  EXPECT_EQ(worth_trying(choice, 1000), (std::vector<std::size_t>{0, 12, 1, 2, 3, 4, 5, 6}));
  // Time for one more candidate, but not for one of the other kind.
  choice.candidates[12].cost.seconds = 1.4;
  EXPECT_EQ(worth_trying(choice, 10.2), (std::vector<std::size_t>{0, 1}));
  // Predicted to be much slower: not tried.
  choice.candidates[12].cost.seconds = 2;
  EXPECT_EQ(worth_trying(choice, 1000), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(ChoosePlan, WeighsWhatWasTriedAgainstPredictionsInWords) {
  PlanChoice choice = choose(request_of(8, 0), inputs_of(8, kSlow, 1e-9));
  const auto dense = std::ranges::find(choice.candidates, true, &PlanCandidate::is_dense);
  ASSERT_NE(dense, choice.candidates.end());
  // Slower than the predictions of the others, which nobody has tried.
  dense->tried_seconds = 100;
  choose_tried(choice);
  EXPECT_TRUE(choice.reason.starts_with("do not compress: it would most likely not be faster ("))
      << choice.reason;
  EXPECT_NE(choice.reason.find(" ms predicted, not tried; "), std::string::npos) << choice.reason;
  EXPECT_NE(choice.reason.find(" ms predicted, 100000.00 when tried)"), std::string::npos)
      << choice.reason;
  // If both were tried, their times are compared.
  const auto other = std::ranges::find(choice.candidates, false, &PlanCandidate::is_dense);
  other->tried_seconds = 101;
  choose_tried(choice);
  EXPECT_NE(choice.reason.find("it would cost 1000.00 ms more ("), std::string::npos)
      << choice.reason;
}

}  // namespace
}  // namespace cinch::rt
