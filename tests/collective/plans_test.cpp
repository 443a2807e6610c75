// Compressor x plan x ranks x sizes x transport: every rank's update equals the sequential
// oracle's, bit for bit. A set that covers all pairs of values; CINCH_LONG=1 runs all combinations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "runtime/plan/check_plan.h"
#include "runtime/planner/planner.h"
#include "tests/collective/support/plan_cases.h"
#include "tests/collective/support/thread_worlds.h"
#include "tests/environment.h"
#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::testing {
namespace {

// Transports whose ranks are threads; over MPI: mpi/sync_test.cpp.
class PlansOver : public ::testing::TestWithParam<std::tuple<ThreadWorld, std::uint32_t>> {};

TEST_P(PlansOver, GiveWhatTheOracleGives) {
  const auto& [transport, world] = GetParam();
  const auto combinations = combinations_over(transport.name, world);
  ASSERT_FALSE(combinations.empty());
  transport.run(
      world, [&](rt::Transport& rank, const Leave&) { run_combinations(rank, combinations); },
      Sums::RankOrder);
  RecordProperty("combinations", static_cast<int>(combinations.size()));
}

TEST_P(PlansOver, GroupsGiveWhatTheOracleGives) {
  const auto& [transport, world] = GetParam();
  const SyncCase one_case = grouped_case(world);
  const rt::Status sound = rt::check_plan(*one_case.plan);
  ASSERT_TRUE(sound) << sound.error().message;
  const StepDigests wanted = wanted_digests(one_case);
  // Sums that programs add up themselves need no order of the library's.
  for (const Sums sums : {Sums::RankOrder, Sums::Library}) {
    transport.run(
        world,
        [&](rt::Transport& rank, const Leave&) {
          check_digests(one_case, rank, wanted, "groups over " + std::string(rank.name()));
        },
        sums);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, PlansOver,
                         ::testing::Combine(::testing::ValuesIn(thread_worlds()),
                                            ::testing::ValuesIn(kWorlds)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" +
                                  std::to_string(std::get<1>(each.param));
                         });

using ValuePairs = std::set<std::pair<std::string, std::string>>;

ValuePairs pairs_of(const std::vector<Combination>& combinations) {
  ValuePairs pairs;
  for (const Combination& one : combinations) {
    const std::string values[] = {"program " + one.program,
                                  "plan " + one.plan,
                                  "ranks " + std::to_string(one.world),
                                  "size " + std::to_string(one.size),
                                  "pieces of " + std::to_string(one.piece_bytes),
                                  "lengths " + std::to_string(static_cast<int>(one.lengths))};
    for (const std::string& a : values) {
      for (const std::string& b : values) {
        if (a < b) pairs.emplace(a, b);
      }
    }
  }
  return pairs;
}

// Each transport runs every value, so pairs with a transport are covered as well.
TEST(Plans, AllPairsAreRunOverEachTransport) {
  if (is_sample_run()) GTEST_SKIP() << "a sample of them";
  const ValuePairs all = pairs_of(all_combinations());
  std::vector<std::string> transports{"mpi"};
  for (const ThreadWorld& of_threads : thread_worlds()) transports.emplace_back(of_threads.name);
  for (const std::string& transport : transports) {
    std::vector<Combination> run;
    for (const std::uint32_t world : kWorlds) {
      std::ranges::copy(combinations_over(transport, world), std::back_inserter(run));
    }
    EXPECT_TRUE(pairs_of(run) == all) << transport;
    EXPECT_TRUE(is_long_run() || run.size() < all_combinations().size() / 20) << transport;
  }
}

TEST(Plans, SynchroniseMatrices) {
  for (const std::uint32_t world : {1, 3}) {
    SyncCase matrices;
    matrices.programs = {compiled_library("powersgd(rank: 2)")};
    rt::PlanRequest request;
    request.plan = "two_shot";
    request.world = world;
    request.codecs = facts_of(matrices.programs, world);
    request.tensors = {{"a", 30, 20, 0}, {"bias", 20, 1, rt::kDense}, {"b", 8, 40, 0}};
    matrices.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
    check_steps(matrices, "powersgd");
  }
}

// First payloads with a header only, or of two bits per element, then with all elements: the first
// step does not have the largest.
TEST(Plans, PayloadsThatFollowTheStep) {
  constexpr std::uint32_t kWorld = 3;
  for (const char* program : {"local_steps(none, every: 2)", "local_steps(topk, every: 2)",
                              "correct_every(two_bit, every: 2)"}) {
    rt::PlanRequest request;
    request.world = kWorld;
    request.piece_bytes = 16384;
    const auto compiled = compiled_library(program);
    Programs programs = {compiled};
    request.codecs = facts_of(programs, kWorld);
    request.tensors = {{"large", 9000, 1, 0}, {"small", 40, 1, 0}};
    for (const std::string_view plan : rt::plan_names()) {
      request.plan = plan;
      if (!rt::build_plan(request)) continue;  // sums on the way need payloads of fixed size
      SyncCase one_case = make_sync_case(compiled, request);
      one_case.num_steps = 4;
      check_steps(one_case, fmt::format("{} by {}", program, plan));
    }
  }
}

// The vote over the signs of all ranks' gradients; a tie is positive.
Tensors majority_of(const rt::Plan& plan) {
  Tensors votes;
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    const Tensors gradients = make_gradients(plan, rank, 0);
    votes.resize(gradients.size());
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      votes[t].resize(gradients[t].size());
      for (std::size_t i = 0; i < votes[t].size(); ++i) votes[t][i] += gradients[t][i] < 0 ? -1 : 1;
    }
  }
  for (auto& tensor : votes) {
    for (float& vote : tensor) vote = vote < 0 ? -1 : 1;
  }
  return votes;
}

// signsgd, but for what carries its sums: it carries them itself.
constexpr const char* kVote = R"(
compressor vote {
  wire { negative: [bool; n] }

  encode(g: [f32; n]) { wire { negative: g < 0 } }

  decode(w) { select(w.negative, -1.0, 1.0) }

  finish(sum) { select(sum < 0, -1.0, 1.0) }
}
)";

// With eight ranks, by every plan that takes the program.
TEST(Plans, VotesAreOfAllRanks) {
  constexpr std::uint32_t kWorld = 8;
  const auto program = compiled_text("vote", kVote);
  rt::PlanRequest request;
  request.world = kWorld;
  request.piece_bytes = 16384;
  request.codecs = {rt::codec_facts(rt::image_of(program), kWorld)};
  request.tensors = {{"large", 20000, 1, 0}, {"small", 40, 1, 0}};
  for (const std::string_view plan : rt::plan_names()) {
    request.plan = plan;
    const auto built = rt::build_plan(request);
    if (plan == "ring" || plan == "tree") {
      ASSERT_FALSE(built);
      EXPECT_NE(built.error().message.find("does not take the plan " + std::string(plan)),
                std::string::npos)
          << built.error().message;
      continue;
    }
    const SyncCase one_case = make_sync_case(program, request);
    const auto results = run_steps(one_case);
    const Tensors majority = majority_of(*one_case.plan);
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      ASSERT_EQ(results[0].errors[rank], "") << plan;
      EXPECT_TRUE(are_same(results[0].updates[rank], majority)) << plan << ", rank " << rank;
    }
  }
}

// A plan that was not built for the program is checked, too.
TEST(Plans, OfPartialSumsAreNotOpenedForAVote) {
  const auto program = compiled_text("vote", kVote);
  rt::PlanRequest request;
  request.plan = "ring";
  request.world = 1;
  request.codecs = {rt::codec_facts(rt::image_of(program), 1)};
  request.codecs[0].takes_partial_sums = true;
  request.tensors = {{"large", 2000, 1, 0}};
  SyncCase one_case;
  one_case.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
  one_case.programs = {program};
  rt::LoopbackWorld world(1);
  const auto transport = world.transport(0);
  const auto session = rt::SyncSession::open(sync_options(one_case, 0), *transport);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, rt::ErrorKind::InvalidArgument);
  EXPECT_NE(session.error().message.find("is not linear"), std::string::npos)
      << session.error().message;
}

// A field of each type that is sent in another type.
constexpr const char* kVotes = R"(
compressor votes {
  wire { least: f32 by min, most: f32 by max, sign: [i5; n] by sum, rough: [f8e4m3; n] by sum,
         exact: f64 by sum, many: [u16; n] by sum, half: [f16; n] by sum }
  encode(g: [f32; n]) {
    let size = max(abs(g))
    wire { least: -size, most: size, sign: select(g < 0, -1, 1) as i5, rough: g as f8e4m3,
           exact: size as f64, many: select(g < 0, 3, 1000) as u16, half: g as f16 }
  }
  decode(w) {
    (w.sign as f32) * w.most + (w.rough as f32) + (w.exact as f32) + w.least + (w.many as f32) +
        (w.half as f32)
  }
}
)";

SyncCase votes_case(std::uint32_t world) {
  rt::PlanRequest request;
  request.plan = "allreduce";
  request.world = world;
  request.piece_bytes = 16384;
  request.tensors = {{"large", 10007, 1, 0}, {"none", 0, 1, 0}, {"small", 3, 1, 0}};
  return make_sync_case(compiled_text("votes", kVotes), request);
}

TEST(Plans, AddPayloadsUp) {
  for (const std::uint32_t world : {1U, 2U, 5U, 15U}) {
    check_steps(votes_case(world), "votes, " + std::to_string(world) + " ranks");
  }
  // Types: i5, u16, f8, f16 and the marks are sent in the smallest that all transports add.
  std::set<std::string> types;
  const SyncCase of_five = votes_case(5);
  for (const rt::Task& task : of_five.plan->ranks[0].tasks) {
    if (task.kind == rt::TaskKind::Exchange) types.insert(dtype_name(task.dtype));
  }
  EXPECT_EQ(types, (std::set<std::string>{"f16", "f32", "f64", "i8", "u32"}));
}

constexpr const char* kRough = R"(
compressor rough {
  wire { value: [f8e4m3; n] by sum }
  encode(g: [f32; n]) { wire { value: g as f8e4m3 } }
  decode(w) { w.value as f32 }
}
)";

constexpr const char* kRoughLarge = R"(
compressor rough {
  wire { value: [f8e4m3; n] by sum }
  encode(g: [f32; n]) { wire { value: select(abs(g) > 1, g, 0.0) as f8e4m3 } }
  decode(w) { w.value as f32 }
}
)";

// The update of four ranks that all have this gradient; empty: an error.
std::vector<float> update_of(const std::shared_ptr<const rt::LoadedProgram>& program,
                             std::string_view plan, float value) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = 4;
  request.tensors = {{"large", 300, 1, 0}};
  SyncCase one_case = make_sync_case(program, request);
  one_case.num_steps = 1;
  one_case.change_gradients = [value](std::uint32_t, std::uint64_t, Tensors& gradients) {
    std::ranges::fill(gradients[0], value);
  };
  const StepResult result = run_steps(one_case)[0];
  return result.errors[0].empty() ? result.updates[0][0] : std::vector<float>();
}

// Where ranks add to payloads they send quarters, so that sums fit: the smallest values lose two
// bits.
TEST(Plans, OfHalvesHoldTheMean) {
  const auto half = compiled_library("fp16");
  constexpr float kSubnormal = 0x1.8p-22f, kRounded = 0x1p-21f;
  for (const std::string_view plan : rt::plan_names()) {
    const bool adds = plan == "allreduce" || plan == "ring" || plan == "tree";
    EXPECT_EQ(update_of(half, plan, 20000), std::vector<float>(300, 20000)) << plan;
    EXPECT_EQ(update_of(half, plan, kSubnormal),
              std::vector<float>(300, adds ? kRounded : kSubnormal))
        << plan;
  }
}

constexpr const char* kLarge = R"(
compressor large_ones {
  wire { value: [f16; n] by sum }
  encode(g: [f32; n]) { wire { value: select(abs(g) > 1, g, 0.0) as f16 } }
  decode(w) { w.value as f32 }
}
)";

// A program that is not linear sends its gradient as it is: a quarter would be below its threshold.
TEST(Plans, OfHalvesThatDependOnTheSizeSendNoShares) {
  const auto large = compiled_text("large_ones", kLarge);
  for (const std::string_view plan : rt::plan_names()) {
    EXPECT_EQ(update_of(large, plan, 2), std::vector<float>(300, 2)) << plan;
  }
}

// f8 has no infinity: a value that exceeds it is an error, as for integers.
TEST(Plans, SumsOfNarrowFloatsThatDoNotFitAreFound) {
  const auto rough = compiled_text("rough", kRough);
  EXPECT_EQ(update_of(rough, "allreduce", 208), std::vector<float>(300, 208));
  const auto large = compiled_text("rough", kRoughLarge);
  EXPECT_EQ(update_of(large, "allreduce", 112), std::vector<float>(300, 112));
  EXPECT_EQ(update_of(large, "allreduce", 208), std::vector<float>());
  EXPECT_EQ(update_of(large, "allgather", 208), std::vector<float>(300, 208));
}

// Sixteen votes exceed i5: every rank gets the error, and none has an update.
TEST(Plans, SumsThatDoNotFitAreFound) {
  for (const StepResult& result : run_steps(votes_case(17))) {
    for (const std::string& error : result.errors) {
      EXPECT_NE(error, "");
    }
    EXPECT_NE(result.errors[0].find("the sum over ranks of field sign does not fit i5"),
              std::string::npos)
        << result.errors[0];
    break;
  }
}

SyncCase machines_case(const std::string& program, std::uint32_t machines, std::uint32_t on_each,
                       const rt::ExchangeOption& option) {
  rt::PlanRequest request;
  request.plan = "hierarchical";
  request.world = machines * on_each;
  request.ranks_per_machine = on_each;
  request.piece_bytes = 4096;
  request.option = option;
  request.tensors = {{"large", 3001, 1, 0}, {"bias", 7, 1, rt::kDense}, {"small", 40, 1, 0}};
  return make_sync_case(compiled_library(program), request);
}

TEST(Plans, GoBetweenMachines) {
  for (const auto& [machines, on_each] :
       {std::pair(2U, 2U), {3U, 2U}, {2U, 3U}, {1U, 1U}, {1U, 3U}, {3U, 1U}}) {
    for (const char* program : {"ef_sign", "topk(ratio: 0.1)", "qsgd"}) {
      check_steps(machines_case(program, machines, on_each, rt::usual_hierarchical_option()),
                  program, on_each);
    }
  }
}

// Every option of the tree: all ranks hold the same bits, and without compression the mean.
TEST(Plans, GoEveryWayOfTheTree) {
  for (const rt::ExchangeOption& option : rt::all_exchange_options({.has_cpu = false})) {
    const SyncCase one_case = machines_case("ef_sign", 2, 2, option);
    const auto results = run_steps(one_case);
    for (const StepResult& result : results) {
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        ASSERT_EQ(result.errors[rank], "") << rt::describe_option(option);
        ASSERT_TRUE(are_same(result.updates[rank], result.updates[0]))
            << rt::describe_option(option) << ", rank " << rank;
      }
    }
    if (rt::num_compressions(option) > 0) continue;
    float mean = 0;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      mean += make_gradients(*one_case.plan, rank, 0)[0][17] / 4;
    }
    ASSERT_NEAR(results[0].updates[0][0][17], mean, 1e-5) << rt::describe_option(option);
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
