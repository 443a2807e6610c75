// Programs with a `sync` as parts and exchanges of a plan: the oracle's bits, also for several
// tensors at once besides others. A gradient that is not finite, or a failure on one rank, ends the
// step in the same way on all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/autoplan/auto_plan.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/choose_plan.h"
#include "runtime/planner/planner.h"
#include "tests/collective/support/plan_cases.h"

namespace cinch::testing {
namespace {

// Every collective, one of them in a loop.
constexpr const char* kRoundsText = R"(
compressor rounds {
  state last: [f32; n] = 0
  sync(g: [f32; n]) {
    let largest = allreduce(max(abs(g)), max)
    let mut grown = allreduce(g + 0.5 * last, mean)
    for i in 0..3 {
      grown = allreduce(grown * 0.5 + (worker as f32) * 0.25, sum)
    }
    let halves = allgather(g as f16)
    let by_rank = reshape(iota(world * 3) + (worker as u32) * 100, world, 3)
    let swapped = all_to_all(by_rank)
    let part = reduce_scatter(reshape(iota(world * 2) as i32, world, 2) + (worker as i32))
    let said = broadcast(g * 2.0, root: 0)
    last = grown
    grown + said + reshape(sum(halves as f32, axis: 0), n) + largest +
      allreduce((sum(swapped) as f32) * 0.125, sum) + (sum(allgather(part)) as f32)
  }
}
)";

// Values decide which collective comes next.
constexpr const char* kOpen = R"(
compressor open {
  sync(g: [f32; n]) {
    let largest = allreduce(max(abs(g)), max)
    let mut total = allreduce(g, sum)
    if largest > 1.0 {
      total = total + allreduce(g, min)
    }
    total
  }
}
)";

// Ranks name their receivers, and send as many elements as they find.
constexpr const char* kRouted = R"(
compressor routed {
  state turns: u32 = 0
  sync(g: [f32; n]) {
    let from_left = sendrecv(g, to: (worker + 1) % world)
    let own = sendrecv(from_left as f16, to: (worker + world - 1) % world) as f32
    let index = nonzero(abs(own) > 0.5)
    let values = sendrecv(g[index], to: (worker as u32 + turns) % world)
    let places = sendrecv(index, to: (worker as u32 + turns) % world)
    let none = allgather(filter(g, where: g != g))
    turns += 1
    scatter_add(allgather(values), at: allgather(places), size: n) +
      allreduce(from_left, mean) + (len(none) as f32)
  }
}
)";

// From the second step on two ranks send to the same one.
constexpr const char* kCrowding = R"(
compressor crowding {
  state turns: u32 = 0
  sync(g: [f32; n]) {
    turns += 1
    let to = if turns < 2 { worker as u32 } else { max(worker as u32, 1) }
    allreduce(sendrecv(g, to: to), mean)
  }
}
)";

constexpr const char* kFailingText = R"(
compressor failing {
  state kept: [f32; n] = 0
  sync(g: [f32; n]) {
    let size = max(abs(g))
    assert size < 1e9 || worker != 1, "moderate at first"
    let total = allreduce(g, sum)
    assert min(total) > -1e7 || worker != 1, "not far below zero in the middle"
    let largest = allreduce(size, max)
    kept = total
    assert largest < 1e5 || worker != 1, "small at the end"
    total / max(largest, 1.0)
  }
}
)";

struct Protocol {
  const char* name;
  const char* text;
};
constexpr Protocol kRounds{"rounds", kRoundsText}, kFailing{"failing", kFailingText};

// Tensors of several protocols beside one that is encoded and one that is dense.
SyncCase mixed_case(std::string_view plan, std::uint32_t world, const Protocol& protocol) {
  SyncCase made;
  made.programs = {compiled_library("powersgd(rank: 2)"),
                   compiled_text(protocol.name, protocol.text),
                   compiled_library("topk(ratio: 0.1)"), compiled_text("open", kOpen),
                   compiled_text("routed", kRouted)};
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.piece_bytes = 8192;
  for (const auto& program : made.programs) {
    request.codecs.push_back(rt::codec_facts(rt::image_of(program), world));
  }
  request.tensors = {{"fc1", 30, 20, 0}, {"fc2", 1500, 1, 1},         {"large", 9000, 1, 2},
                     {"fc3", 8, 40, 0},  {"bias", 20, 1, rt::kDense}, {"fc4", 333, 1, 1},
                     {"none", 0, 1, 1},  {"branching", 50, 1, 3},     {"routed", 210, 1, 4}};
  made.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
  return made;
}

TEST(Protocols, GiveWhatTheOracleGivesBesideOthers) {
  for (const std::string_view plan : {"two_shot", "allreduce", "tree"}) {
    for (const std::uint32_t world : {1U, 2U, 3U, 5U}) {
      check_steps(mixed_case(plan, world, kRounds),
                  std::string(plan) + " of " + std::to_string(world));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Protocols, AreOneTaskOnlyWhereValuesDecide) {
  const SyncCase mixed = mixed_case("two_shot", 3, kRounds);
  const auto plan = rt::plan_from_json(rt::plan_to_json(*mixed.plan));
  ASSERT_TRUE(plan);
  EXPECT_EQ(*plan, *mixed.plan);
  const auto& tasks = plan->ranks[1].tasks;
  EXPECT_EQ(std::ranges::count(tasks, rt::TaskKind::Synchronise, &rt::Task::kind), 2);
  // powersgd has two collectives, the rounds eleven; a part before each, and one to the end.
  EXPECT_EQ(std::ranges::count(tasks, rt::TaskKind::Part, &rt::Task::kind), 2 * 3 + 2 * 12 + 1);
}

TEST(Protocols, BeginBeforeOthersHaveEnded) {
  const SyncCase mixed = mixed_case("two_shot", 3, kRounds);
  const auto& tasks = mixed.plan->ranks[0].tasks;
  const auto place = [&](std::string_view text) {
    return std::ranges::find_if(
        tasks, [&](const rt::Task& task) { return rt::describe_task(*mixed.plan, task) == text; });
  };
  EXPECT_LT(place("part 0 of fc3"), place("part 1 of fc1"));
  EXPECT_LT(place("part 1 of fc3"), place("part 3 of fc2"));
  EXPECT_NE(place("part 3 of fc2"), tasks.end());
}

TEST(Protocols, WhatIsNotFiniteOnOneRankLeavesTheOthersTensors) {
  for (const std::uint32_t world : {1U, 3U}) {
    SyncCase mixed = mixed_case("two_shot", world, kRounds);
    mixed.num_steps = 3;
    mixed.change_gradients = [world](std::uint32_t rank, std::uint64_t step, Tensors& gradients) {
      if (step != 1 || rank != world - 1) return;
      gradients[1][700] = std::numeric_limits<float>::quiet_NaN();
      gradients[3][5] = std::numeric_limits<float>::infinity();
    };
    check_steps(mixed, "step 1 has no finite gradients");
    const auto results = run_steps(mixed);
    for (const Tensors& updates : results[1].updates) {
      EXPECT_TRUE(std::ranges::all_of(updates[1], [](float x) { return std::isnan(x); }));
      EXPECT_TRUE(std::ranges::none_of(updates[0], [](float x) { return std::isnan(x); }));
    }
  }
}

// The message of a check is ignored if some rank's gradient is not finite.
TEST(Protocols, WhatIsNotFiniteComesBeforeWhatFails) {
  SyncCase mixed = mixed_case("allgather", 3, kFailing);
  mixed.change_gradients = [](std::uint32_t rank, std::uint64_t step, Tensors& gradients) {
    if (step != 1) return;
    if (rank == 1) gradients[1][3] = 2e9F;
    if (rank == 2) gradients[1][4] = std::numeric_limits<float>::quiet_NaN();
  };
  check_steps(mixed, "one rank fails, one has no finite gradient");
}

// Rank 1 fails at fc4 in step 1: all ranks report it, and no state has advanced.
void expect_failure(float value, const char* message) {
  SyncCase mixed = mixed_case("two_shot", 3, kFailing);
  mixed.change_gradients = [value](std::uint32_t rank, std::uint64_t step, Tensors& gradients) {
    if (rank == 1 && step == 1) gradients[5][200] = value;
  };
  rt::LoopbackWorld world(3);
  run_ranks(world, 3, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(mixed, own.rank), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    Tensors updates;
    ASSERT_TRUE(step_on(**session, gradients_of(mixed, own.rank, 0), updates, 0));
    const States before = states_of(**session);
    const rt::Status status = step_on(**session, gradients_of(mixed, own.rank, 1), updates, 1);
    ASSERT_FALSE(status) << message;
    const std::string& error = status.error().message;
    EXPECT_NE(error.find(message), std::string::npos) << own.rank << ": " << error;
    EXPECT_NE(error.find("fc4"), std::string::npos) << own.rank << ": " << error;
    if (own.rank != 1) EXPECT_NE(error.find("rank 1"), std::string::npos) << error;
    EXPECT_EQ(states_of(**session), before) << "rank " << own.rank;
  });
}

TEST(Protocols, AFailureInTheFirstPart) {
  expect_failure(2e9F, "moderate at first");
}
TEST(Protocols, AFailureInTheMiddle) {
  expect_failure(-2e8F, "not far below zero in the middle");
}
TEST(Protocols, AFailureInTheLastPart) {
  expect_failure(2e5F, "small at the end");
}

// No rank waits for one that will not send, and no state has advanced.
TEST(Protocols, ReceiversOnWhichRanksDoNotAgree) {
  SyncCase one_case;
  one_case.programs = {compiled_text("crowding", kCrowding)};
  rt::PlanRequest request;
  request.plan = "two_shot";
  request.world = 3;
  request.codecs = {rt::codec_facts(rt::image_of(one_case.programs[0]), 3)};
  request.tensors = {{"fc", 100, 1, 0}};
  one_case.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
  rt::LoopbackWorld world(3);
  run_ranks(world, 3, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    Tensors updates;
    ASSERT_TRUE(step_on(**session, gradients_of(one_case, own.rank, 0), updates, 0));
    const States before = states_of(**session);
    const rt::Status status = step_on(**session, gradients_of(one_case, own.rank, 1), updates, 1);
    ASSERT_FALSE(status);
    const std::string& error = status.error().message;
    EXPECT_NE(error.find("ranks 0 and 1 both send to rank 1"), std::string::npos) << error;
    EXPECT_NE(error.find("fc"), std::string::npos) << error;
    EXPECT_EQ(states_of(**session), before) << "rank " << own.rank;
  });
}

// A rank whose plan was made for machines of another size finds out before anything is sent.
TEST(Protocols, RefuseAPlanOfOtherMachines) {
  SyncCase one_case = grouped_case(4);
  one_case.machine_ranks = 1;
  const auto results = run_steps(one_case);
  for (const std::string& error : results[0].errors) {
    EXPECT_NE(error.find("in another way than the plan says"), std::string::npos) << error;
  }
}

TEST(Protocols, RanksOfOtherMachinesAreNamed) {
  const SyncCase one_case = grouped_case(2);
  rt::LoopbackWorld world(2);
  run_ranks(world, 2, [&](const RankBody& own) {
    rt::SyncOptions options = sync_options(one_case, own.rank);
    options.machine_ranks = 1 + own.rank;
    const auto session = rt::SyncSession::open(options, own.transport);
    ASSERT_FALSE(session);
    EXPECT_NE(session.error().message.find("the number of ranks on each machine"),
              std::string::npos)
        << session.error().message;
  });
}

// A plan of another program's collectives.
TEST(Protocols, RefuseAnotherProgramsPlan) {
  SyncCase mixed = mixed_case("allgather", 2, kRounds);
  mixed.programs[1] = compiled_text(kFailing.name, kFailing.text);
  const auto results = run_steps(mixed);
  for (const std::string& error : results[0].errors) {
    EXPECT_NE(error.find("in another way than the plan says"), std::string::npos) << error;
  }
}

TEST(Protocols, AreMeasuredAndPredicted) {
  constexpr std::uint32_t kWorld = 3;
  const auto program = compiled_library("powersgd(rank: 2)");
  rt::PlanRequest request;
  request.plan = "two_shot";
  request.world = kWorld;
  request.codecs = {rt::codec_facts(rt::image_of(program), kWorld)};
  request.tensors = {{"a", 64, 48, 0}, {"b", 32, 48, 0}};
  const Tensors gradients = make_gradients(*rt::build_plan(request), 0, 0);
  rt::CostInputs inputs;
  rt::SpeedOptions options;
  options.session.programs = {program};
  options.session.threads = 1;
  options.seconds = 0.02;
  const auto speed = rt::measure_codec(0, gradients[0], 64, 48, options);
  ASSERT_TRUE(speed) << speed.error().message;
  ASSERT_EQ(speed->parts.size(), 3u);
  EXPECT_GT(speed->parts[0].at(3072), 0);
  inputs.codecs = {*speed};
  ASSERT_TRUE(rt::measure_dense(3072, options, inputs));
  inputs.network = rt::shaped_network(kWorld, {1e-3, 1e6});
  const auto choice = rt::choose_plan(request, inputs, {});
  ASSERT_TRUE(choice) << choice.error().message;
  // A rank-2 factorisation of 64 by 48 against 12 KiB of f32 at a megabyte a second.
  EXPECT_FALSE(choice->chosen.is_dense);
  EXPECT_GT(choice->chosen.cost.decode_seconds, 0);
}

}  // namespace
}  // namespace cinch::testing
