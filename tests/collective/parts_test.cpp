// Steps in parts. Gradients become ready in random orders, different on every rank, and updates
// equal the sequential oracle's, bit for bit. A tensor that becomes ready twice or never is an
// error on all ranks. Also scales, skipped steps and unused tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "runtime/planner/planner.h"
#include "tests/collective/support/plan_cases.h"
#include "tests/collective/support/sync_oracle.h"

namespace cinch::testing {
namespace {

// In the place of a plan: tensors take several.
constexpr std::string_view kRoutes = "routes";

SyncCase model_case(std::string_view plan, std::uint32_t world) {
  SyncCase made;
  made.programs = {compiled_library("powersgd(rank: 2)"), compiled_library("ef_sign"),
                   compiled_library("topk(ratio: 0.1)")};
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.piece_bytes = 16384;
  request.codecs = facts_of(made.programs, world);
  request.tensors = {
      {"head", 30, 20, 0},          {"head.bias", 20, 1, rt::kDense}, {"fc3", 3000, 1, 1},
      {"fc2", 9000, 1, 2},          {"fc2.bias", 90, 1, rt::kDense},  {"none", 0, 1, 1},
      {"fc1", 700, 1, 1},           {"embedding", 40, 60, 0},         {"small", 5, 1, 2},
      {"last", 5000, 1, rt::kDense}};
  if (plan == kRoutes) {
    request.routes = {{.plan = "two_shot", .piece_bytes = 16384},
                      {.plan = "ring", .piece_bytes = 4096},
                      {.plan = "allgather", .device = rt::OptionDevice::Cpu}};
    for (std::uint32_t t = 0; t < request.tensors.size(); ++t) request.route_of.push_back(t % 3);
  }
  made.plan = std::make_shared<rt::Plan>(*rt::build_plan(request));
  return made;
}

// A step in which tensors become ready in this order.
rt::Result<rt::StepOutcome> step_in_parts(rt::SyncSession& session, const Tensors& gradients,
                                          Tensors& updates, std::uint64_t step,
                                          const std::vector<std::uint32_t>& order,
                                          const rt::StepOptions& options = {}) {
  updates = gradients;
  if (rt::Status status = session.begin_step(step, options); !status) {
    return tl::unexpected<rt::Error>(status.error());
  }
  for (const std::uint32_t tensor : order) {
    const rt::Status status = session.set_ready(tensor, gradients[tensor], updates[tensor]);
    if (!status) ADD_FAILURE() << status.error().message;
    if (tensor % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return session.finish_step();
}

std::vector<std::uint32_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::shuffle(order, std::mt19937_64(seed));
  return order;
}

std::vector<Tensors> all_gradients(const SyncCase& one_case, std::uint64_t step) {
  std::vector<Tensors> gradients;
  for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
    gradients.push_back(gradients_of(one_case, rank, step));
  }
  return gradients;
}

// Every rank with a session over loopback.
using SessionBody = std::function<void(rt::SyncSession&, const RankBody&)>;
void run_sessions(const SyncCase& one_case, const SessionBody& body) {
  rt::LoopbackWorld world(one_case.plan->world());
  run_ranks(world, one_case.plan->world(), [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    body(**session, own);
  });
}

TEST(StepInParts, GivesTheOraclesBitsInAnyOrder) {
  constexpr std::uint64_t kSteps = 4;
  for (const std::string_view plan : {std::string_view("two_shot"), std::string_view("allreduce"),
                                      std::string_view("tree"), kRoutes}) {
    for (const std::uint32_t world : {1U, 2U, 4U}) {
      const SyncCase model = model_case(plan, world);
      std::vector<std::vector<Tensors>> found(world, std::vector<Tensors>(kSteps));
      run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
        for (std::uint64_t step = 0; step < kSteps; ++step) {
          const auto order = shuffled(model.plan->tensors.size(), 100 * step + own.rank);
          const auto outcome = step_in_parts(session, gradients_of(model, own.rank, step),
                                             found[own.rank][step], step, order);
          ASSERT_TRUE(outcome) << outcome.error().message;
          EXPECT_FALSE(outcome->is_skipped);
        }
      });
      SyncOracle oracle(*model.plan, model.programs, model.seed);
      for (std::uint64_t step = 0; step < kSteps; ++step) {
        const Tensors wanted = oracle.step(all_gradients(model, step), step);
        for (std::uint32_t rank = 0; rank < world; ++rank) {
          ASSERT_TRUE(are_same(found[rank][step], wanted))
              << plan << " of " << world << ", step " << step << ", rank " << rank;
        }
      }
    }
  }
}

// In the first step exchanges follow the plan, then the order in which tensors became ready.
TEST(StepInParts, TellsWhichUpdatesAreWritten) {
  const SyncCase model = model_case("two_shot", 2);
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    std::vector<std::uint32_t> order(10);
    std::iota(order.rbegin(), order.rend(), 0U);
    // The first step spends its time on waiting for tensors.
    const Tensors first = gradients_of(model, own.rank, 0);
    Tensors updates = first;
    ASSERT_TRUE(session.begin_step(0));
    for (const std::uint32_t tensor : order) {
      std::this_thread::sleep_for(std::chrono::milliseconds(tensor == 0 ? 300 : 1));
      ASSERT_TRUE(session.set_ready(tensor, first[tensor], updates[tensor]));
    }
    ASSERT_TRUE(session.finish_step());
    const Tensors gradients = gradients_of(model, own.rank, 1);
    updates = gradients;
    ASSERT_TRUE(session.begin_step(1));
    EXPECT_FALSE(session.wait_for(3)) << "not ready";
    for (std::uint32_t t = 9; t > 0; --t) {
      ASSERT_TRUE(session.set_ready(t, gradients[t], updates[t]));
    }
    ASSERT_TRUE(session.wait_for(8));
    EXPECT_TRUE(session.is_done(8));
    EXPECT_FALSE(session.is_done(0));
    ASSERT_TRUE(session.set_ready(0, gradients[0], updates[0]));
    ASSERT_TRUE(session.finish_step());
    for (std::uint32_t t = 0; t < 10; ++t) EXPECT_TRUE(session.is_done(t)) << t;
  });
}

// Rank 1 does something wrong, and all ranks learn what.
void expect_error(const std::string& message,
                  const std::function<void(rt::SyncSession&, const Tensors&, Tensors&)>& wrong,
                  std::string_view plan = "two_shot") {
  SyncCase model = model_case(plan, 3);
  model.timeout = std::chrono::milliseconds(2000);
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    const Tensors gradients = gradients_of(model, own.rank, 0);
    Tensors updates = gradients;
    ASSERT_TRUE(session.begin_step(0));
    if (own.rank == 1) {
      wrong(session, gradients, updates);
    } else {
      for (std::uint32_t t = 0; t < gradients.size(); ++t) {
        (void)session.set_ready(t, gradients[t], updates[t]);
      }
    }
    const auto outcome = session.finish_step();
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.error().message.find(message), std::string::npos)
        << own.rank << ": " << outcome.error().message;
    if (own.rank != 1) {
      EXPECT_NE(outcome.error().message.find("rank 1"), std::string::npos)
          << outcome.error().message;
    }
    EXPECT_FALSE(session.begin_step(1)) << "no more steps are taken";
  });
}

TEST(StepInParts, WhatIsNeverReadyIsNamedOnAllRanks) {
  for (const std::string_view plan : {std::string_view("two_shot"), kRoutes}) {
    expect_error(
        "tensor fc2 is not ready",
        [](auto& session, auto& gradients, auto& updates) {
          for (std::uint32_t t = 0; t < gradients.size(); ++t) {
            if (t != 3) ASSERT_TRUE(session.set_ready(t, gradients[t], updates[t]));
          }
        },
        plan);
  }
}

TEST(StepInParts, ARankThatHangsIsNamedWithTheTensor) {
  expect_error(
      "tensor head has not become ready",
      [](auto&, auto&, auto&) { std::this_thread::sleep_for(std::chrono::milliseconds(4000)); },
      kRoutes);
}

TEST(StepInParts, WhatIsReadyTwiceIsNamedOnAllRanks) {
  expect_error("tensor fc1 is ready twice", [](auto& session, auto& gradients, auto& updates) {
    for (std::uint32_t t = 0; t < gradients.size(); ++t) {
      ASSERT_TRUE(session.set_ready(t, gradients[t], updates[t]));
      if (t == 6) EXPECT_FALSE(session.set_ready(t, gradients[t], updates[t]));
    }
  });
}

TEST(StepInParts, ATensorThatIsNotThereIsNamedOnAllRanks) {
  expect_error("tensor 10 of 10", [](auto& session, auto& gradients, auto& updates) {
    EXPECT_FALSE(session.set_ready(10, gradients[0], updates[0]));
  });
  expect_error("fc3: the gradient has 20 elements, but the plan has 3000 for this tensor",
               [](auto& session, auto& gradients, auto& updates) {
                 EXPECT_FALSE(session.set_ready(2, gradients[1], updates[1]));
               });
}

TEST(StepInParts, MemoryThatOverlapsIsNamedOnAllRanks) {
  // Another tensor's gradient, another one's update, and its own gradient further back.
  expect_error("fc1: its memory overlaps that of fc3",
               [](auto& session, auto& gradients, auto& to) {
                 const std::span<float> inside = std::span(to[2]).subspan(2990 - 700, 700);
                 ASSERT_TRUE(session.set_ready(2, to[2], to[2]));
                 EXPECT_FALSE(session.set_ready(6, gradients[6], inside));
               });
  expect_error("small: its memory overlaps that of fc1",
               [](auto& session, auto& gradients, auto& to) {
                 ASSERT_TRUE(session.set_ready(6, gradients[6], to[6]));
                 EXPECT_FALSE(session.set_ready(8, std::span<const float>(to[6]).first(5), to[8]));
               });
  expect_error("fc1: the update overlaps its gradient", [](auto& session, auto&, auto&) {
    std::vector<float> both(701);
    const std::span<float> all = both;
    EXPECT_FALSE(session.set_ready(6, std::span<const float>(all.first(700)), all.last(700)));
  });
}

TEST(StepInParts, EmptyTensorsLieAnywhere) {
  const SyncCase model = model_case("two_shot", 2);
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    const Tensors gradients = gradients_of(model, own.rank, 0);
    Tensors updates = gradients;
    ASSERT_TRUE(session.begin_step(0));
    for (std::uint32_t t = 0; t < gradients.size(); ++t) {
      if (t != 5) ASSERT_TRUE(session.set_ready(t, gradients[t], updates[t]));
    }
    const std::span<float> nothing = std::span(updates[2]).subspan(100, 0);
    const rt::Status status = session.set_ready(5, std::span<const float>(nothing), nothing);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_TRUE(session.finish_step());
  });
}

TEST(StepInParts, CallsOutOfTurnChangeNothing) {
  const SyncCase model = model_case("two_shot", 2);
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    const Tensors gradients = gradients_of(model, own.rank, 0);
    Tensors updates;
    EXPECT_FALSE(session.finish_step());
    updates = gradients;
    EXPECT_FALSE(session.set_ready(0, gradients[0], updates[0]));
    ASSERT_TRUE(session.begin_step(0));
    EXPECT_FALSE(session.begin_step(0));
    for (std::uint32_t t = 0; t < gradients.size(); ++t) {
      ASSERT_TRUE(session.set_ready(t, gradients[t], updates[t]));
    }
    ASSERT_TRUE(session.finish_step());
    EXPECT_TRUE(step_on(session, gradients_of(model, own.rank, 1), updates, 1));
  });
}

// Nobody waits for a session that is destroyed in the middle of a step.
TEST(StepInParts, ASessionThatIsClosedGivesUp) {
  const SyncCase model = model_case("two_shot", 3);
  rt::LoopbackWorld world(3);
  run_ranks(world, 3, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(model, own.rank), own.transport);
    ASSERT_TRUE(session);
    const Tensors gradients = gradients_of(model, own.rank, 0);
    Tensors updates = gradients;
    ASSERT_TRUE((*session)->begin_step(0));
    ASSERT_TRUE((*session)->set_ready(2, gradients[2], updates[2]));
    if (own.rank == 1) return;
    for (std::uint32_t t = 0; t < gradients.size(); ++t) {
      if (t != 2) (void)(*session)->set_ready(t, gradients[t], updates[t]);
    }
    EXPECT_FALSE((*session)->finish_step());
  });
}

// ---- scales, skipped steps, tensors that nobody uses ----

TEST(StepOptions, ScalesLeaveNoTraceInStates) {
  const SyncCase model = model_case("two_shot", 2);
  constexpr float kScale = 1024;
  std::vector<Tensors> plain(2), scaled(2);
  std::vector<States> plain_states(2), scaled_states(2);
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    ASSERT_TRUE(step_on(session, gradients_of(model, own.rank, 0), plain[own.rank], 0));
    plain_states[own.rank] = states_of(session);
  });
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    Tensors gradients = gradients_of(model, own.rank, 0);
    for (auto& tensor : gradients) {
      for (float& x : tensor) x *= kScale;
    }
    const auto order = shuffled(gradients.size(), own.rank);
    ASSERT_TRUE(step_in_parts(session, gradients, scaled[own.rank], 0, order,
                              {.scale = kScale, .is_sum = true}));
    scaled_states[own.rank] = states_of(session);
  });
  EXPECT_EQ(plain_states, scaled_states);
  for (auto& tensor : plain[0]) {
    for (float& x : tensor) x *= 2 * kScale;
  }
  EXPECT_TRUE(are_same(plain[0], scaled[0]));
  EXPECT_TRUE(are_same(plain[0], scaled[1]));
}

TEST(StepOptions, ThatDifferAreAnErrorOnAllRanks) {
  const SyncCase model = model_case("two_shot", 2);
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    Tensors updates;
    const auto order = shuffled(model.plan->tensors.size(), own.rank);
    const auto outcome = step_in_parts(session, gradients_of(model, own.rank, 0), updates, 0, order,
                                       {.skips_non_finite = own.rank == 0});
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.error().message.find("with other options"), std::string::npos)
        << outcome.error().message;
  });
}

// Whatever the step's threads are doing.
TEST(StepInParts, ASessionMayBeClosedRightAfterItsBegin) {
  const SyncCase model = model_case("two_shot", 1);
  for (int turn = 0; turn < 50; ++turn) {
    rt::LoopbackWorld world(1);
    run_ranks(world, 1, [&](const RankBody& own) {
      auto session = rt::SyncSession::open(sync_options(model, own.rank), own.transport);
      ASSERT_TRUE(session);
      EXPECT_FALSE((*session)->is_done(0));
      ASSERT_TRUE((*session)->begin_step(0));
    });
  }
}

TEST(StepOptions, RefusesScalesThatAreNone) {
  const SyncCase model = model_case("two_shot", 1);
  for (const double scale : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    run_sessions(model, [&](rt::SyncSession& session, const RankBody&) {
      const rt::Status status = session.begin_step(0, {.scale = scale});
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind, rt::ErrorKind::InvalidArgument);
      Tensors updates;
      EXPECT_TRUE(step_on(session, gradients_of(model, 0, 0), updates, 0)) << "nothing had begun";
    });
  }
}

// One value of one tensor on one rank, however the tensor is sent.
TEST(StepOptions, ANonFiniteGradientAnywhereLeavesAllStates) {
  const SyncCase model = model_case("two_shot", 3);
  for (const std::uint32_t tensor : {0U, 2U, 3U, 9U}) {
    run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
      Tensors updates;
      ASSERT_TRUE(step_on(session, gradients_of(model, own.rank, 0), updates, 0));
      const States before = states_of(session);
      Tensors gradients = gradients_of(model, own.rank, 1);
      const auto order = shuffled(gradients.size(), own.rank);
      if (own.rank == 2) gradients[tensor][7] = std::numeric_limits<float>::infinity();
      const auto skipped =
          step_in_parts(session, gradients, updates, 1, order, {.skips_non_finite = true});
      ASSERT_TRUE(skipped) << skipped.error().message;
      EXPECT_TRUE(skipped->is_skipped) << tensor;
      EXPECT_EQ(states_of(session), before) << tensor;
      const auto next = step_in_parts(session, gradients_of(model, own.rank, 1), updates, 1, order,
                                      {.skips_non_finite = true});
      ASSERT_TRUE(next) << next.error().message;
      EXPECT_FALSE(next->is_skipped);
      EXPECT_NE(states_of(session), before);
    });
  }
}

TEST(StepOptions, TensorsThatNoRankUsesKeepTheirStates) {
  const SyncCase model = model_case("two_shot", 2);
  run_sessions(model, [&](rt::SyncSession& session, const RankBody& own) {
    Tensors updates;
    ASSERT_TRUE(step_on(session, gradients_of(model, own.rank, 0), updates, 0));
    const States before = states_of(session);
    Tensors gradients = gradients_of(model, own.rank, 1);
    ASSERT_TRUE(session.begin_step(1));
    for (std::uint32_t t = 0; t < gradients.size(); ++t) {
      // fc1 is used by rank 1 alone, fc3 and the head by none.
      const bool is_used = t == 6 ? own.rank == 1 : t != 2 && t != 0;
      if (!is_used) std::ranges::fill(gradients[t], 0.0F);
      ASSERT_TRUE(session.set_ready(t, gradients[t], updates[t], is_used));
    }
    ASSERT_TRUE(session.finish_step());
    const States after = states_of(session);
    std::size_t num_kept = 0, num_changed = 0;
    for (const auto& [key, bytes] : after) {
      const std::uint32_t tensor = model.plan->pieces[key.first].tensor;
      if (tensor == 2 || tensor == 0) {
        EXPECT_EQ(bytes, before.at(key));
        ++num_kept;
      }
      if (tensor == 6 && bytes != before.at(key)) ++num_changed;
    }
    EXPECT_GT(num_kept, 0U);
    EXPECT_GT(num_changed, 0U);
    EXPECT_TRUE(std::ranges::all_of(updates[2], [](float x) { return x == 0; }));
    EXPECT_TRUE(std::ranges::any_of(updates[6], [](float x) { return x != 0; }));
  });
}

// ---- reduce-scatter ----

struct ScatterCase {
  const char* program;
  std::uint32_t world;
  std::vector<std::vector<std::int64_t>> ends;  // by tensor; empty: equal parts
};

SyncCase scatter_case(const ScatterCase& of) {
  rt::PlanRequest request;
  request.plan = "reduce_scatter";
  request.world = of.world;
  request.piece_bytes = 8192;
  request.tensors = {{"large", 9001, 1, 0},
                     {"bias", 10, 1, rt::kDense},
                     {"none", 0, 1, 0},
                     {"dense", 5000, 1, rt::kDense},
                     {"small", 3, 1, 0}};
  for (std::size_t t = 0; t < of.ends.size(); ++t) request.tensors[t].part_ends = of.ends[t];
  SyncCase made = make_sync_case(compiled_library(of.program), request);
  return made;
}

// Every rank's part, put together, equals the result of two sessions of each piece, one after the
// other.
void check_scatter(const ScatterCase& of) {
  const SyncCase one_case = scatter_case(of);
  const rt::Plan& plan = *one_case.plan;
  std::vector<std::vector<Tensors>> found(of.world, std::vector<Tensors>(3));
  run_sessions(one_case, [&](rt::SyncSession& session, const RankBody& own) {
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Tensors gradients = gradients_of(one_case, own.rank, step);
      Tensors& updates = found[own.rank][step];
      std::vector<rt::ConstTensorView> from(gradients.begin(), gradients.end());
      std::vector<rt::TensorView> to;
      for (const rt::PlanTensor& tensor : plan.tensors) {
        updates.emplace_back(
            static_cast<std::size_t>(rt::updated_part(tensor, own.rank).num_elems));
      }
      for (auto& update : updates) to.emplace_back(update);
      const rt::Status status = session.step(from, to, step);
      ASSERT_TRUE(status) << status.error().message;
    }
  });
  SyncOracle oracle(plan, one_case.programs, one_case.seed);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Tensors wanted = oracle.step(all_gradients(one_case, step), step);
    Tensors whole(plan.tensors.size());
    for (std::uint32_t rank = 0; rank < of.world; ++rank) {
      for (std::size_t t = 0; t < whole.size(); ++t) {
        whole[t].insert(whole[t].end(), found[rank][step][t].begin(), found[rank][step][t].end());
      }
    }
    ASSERT_TRUE(are_same(whole, wanted)) << of.program << ", step " << step;
  }
}

TEST(ReduceScatter, GivesEachRankItsPart) {
  for (const char* program : {"ef_sign", "topk(ratio: 0.1)", "qsgd"}) {
    for (const std::uint32_t world : {1U, 2U, 3U, 4U}) check_scatter({program, world, {}});
  }
}

TEST(ReduceScatter, TakesUnevenAndEmptyParts) {
  check_scatter(
      {"ef_sign", 3, {{0, 9001, 9001}, {10, 10, 10}, {0, 0, 0}, {7, 4999, 5000}, {1, 2, 3}}});
  check_scatter({"qsgd", 4, {{9000, 9000, 9000, 9001}, {0, 0, 0, 10}, {}, {}, {0, 3, 3, 3}}});
}

TEST(ReduceScatter, RefusesPartsThatAreNone) {
  const auto refuse = [](const char* program, std::vector<std::int64_t> ends, const char* message) {
    rt::PlanRequest request;
    request.plan = "reduce_scatter";
    request.world = 3;
    request.tensors = {{"a", 30, 20, 0, 0, std::move(ends)}};
    request.codecs = {rt::codec_facts(rt::image_of(compiled_library(program)), 3)};
    const auto plan = rt::build_plan(request);
    ASSERT_FALSE(plan);
    EXPECT_NE(plan.error().message.find(message), std::string::npos) << plan.error().message;
  };
  refuse("ef_sign", {200, 600}, "do not cover");
  refuse("ef_sign", {200, 100, 600}, "do not cover");
  refuse("ef_sign", {200, 300, 599}, "do not cover");
  refuse("ef_sign", {-1, 300, 600}, "do not cover");
  refuse("powersgd(rank: 2)", {}, "compresses whole tensors");
}

}  // namespace
}  // namespace cinch::testing
