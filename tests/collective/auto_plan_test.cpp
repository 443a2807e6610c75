// Plans that are chosen by predicting and trying: all ranks choose the same plan, and run the one
// that was tried.
#include "runtime/autoplan/auto_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "runtime/planner/planner.h"
#include "tests/collective/support/emulated_ranks.h"
#include "tests/collective/support/faulty_transport.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {
namespace {

constexpr std::uint32_t kWorld = 3;
// Slow enough that bytes decide, not the speed of this machine.
constexpr rt::LinkShape kSlow{1e-4, 2e6};

rt::PlanRequest make_request(const std::shared_ptr<const rt::LoadedProgram>& program) {
  rt::PlanRequest request;
  request.world = kWorld;
  request.codecs = {rt::codec_facts(rt::image_of(program), kWorld, 0)};
  request.tensors = {{"fc1", 20000, 1, 0}, {"bias", 77, 1, rt::kDense}};
  return request;
}

struct Gradients {
  Gradients(const rt::PlanRequest& request, std::uint32_t rank) {
    rt::Plan plan;
    plan.tensors = request.tensors;
    values = make_gradients(plan, rank, 0);
  }
  std::vector<rt::ConstTensorView> views() const { return {values.begin(), values.end()}; }
  Tensors values;
};

rt::SyncOptions session_options(const std::shared_ptr<const rt::LoadedProgram>& program,
                                std::chrono::milliseconds timeout) {
  rt::SyncOptions options;
  options.programs = {program};
  options.threads = 1;
  options.timeout = timeout;
  return options;
}

struct Choices {
  std::vector<rt::AutoPlan> plans{kWorld};
  std::vector<std::string> errors{kWorld};
};

using Prepare = std::function<void(rt::AutoPlanInputs&, FaultyTransport&, std::uint32_t)>;

Choices choose_on_all(const std::shared_ptr<const rt::LoadedProgram>& program,
                      const Prepare& prepare) {
  Choices choices;
  rt::LoopbackWorld world(kWorld, kSlow);
  run_ranks(world, kWorld, [&](const RankBody& own) {
    FaultyTransport transport(own.transport);
    rt::AutoPlanInputs inputs;
    inputs.request = make_request(program);
    inputs.session = session_options(program, std::chrono::seconds(2));
    const Gradients gradients(inputs.request, own.rank);
    inputs.gradients = gradients.views();
    inputs.measures_network = false;
    if (own.rank == 0) inputs.network = {rt::shaped_network(kWorld, kSlow), {}};
    prepare(inputs, transport, own.rank);
    auto plan = rt::choose_auto_plan(inputs, transport);
    if (plan) choices.plans[own.rank] = std::move(*plan);
    if (!plan) choices.errors[own.rank] = plan.error().message;
  });
  return choices;
}

bool are_alike(const rt::PlanRequest& a, const rt::PlanRequest& b) {
  return a.plan == b.plan && a.piece_bytes == b.piece_bytes && a.lengths == b.lengths &&
         a.tensors == b.tensors;
}

TEST(AutoPlan, TakesTheFastestOfThoseTriedOnAllRanks) {
  for (const char* const name : {"onebit", "topk(ratio: 0.01)"}) {
    // There is enough time to try, however slow this machine is.
    const Choices choices = choose_on_all(
        compiled_library(name),
        [](rt::AutoPlanInputs& inputs, auto&, std::uint32_t) { inputs.trial_seconds = 20; });
    for (const std::string& error : choices.errors) EXPECT_EQ(error, "");
    for (const rt::AutoPlan& plan : choices.plans) {
      EXPECT_TRUE(are_alike(plan.request, choices.plans[0].request)) << name;
    }
    EXPECT_FALSE(choices.plans[1].choice);
    ASSERT_TRUE(choices.plans[0].choice);
    const rt::PlanChoice& choice = *choices.plans[0].choice;
    double fastest = std::numeric_limits<double>::infinity();
    for (const rt::PlanCandidate& each : choice.candidates) {
      if (each.tried_seconds > 0) fastest = std::min(fastest, each.tried_seconds);
    }
    EXPECT_EQ(choice.chosen.tried_seconds, fastest);
    EXPECT_EQ(choice.chosen.plan, choices.plans[0].request.plan);
    EXPECT_FALSE(choice.chosen.is_dense);
    EXPECT_TRUE(choice.reason.ends_with(" when tried: chosen")) << choice.reason;
    EXPECT_TRUE(rt::build_plan(choices.plans[0].request));
  }
}

TEST(AutoPlan, MeasuresTheNetworkAndTriesNothingWhereThatIsAsked) {
  const Choices choices =
      choose_on_all(compiled_library("fp16"), [](rt::AutoPlanInputs& inputs, auto&, std::uint32_t) {
        inputs.network.reset();
        inputs.measures_network = true;
        inputs.trial_seconds = 0;
      });
  for (const std::string& error : choices.errors) EXPECT_EQ(error, "");
  ASSERT_TRUE(choices.plans[0].choice);
  for (const rt::PlanCandidate& each : choices.plans[0].choice->candidates) {
    EXPECT_EQ(each.tried_seconds, 0);
  }
  EXPECT_TRUE(are_alike(choices.plans[2].request, choices.plans[0].request));
}

TEST(AutoPlan, MeasuresTheDeviceThatARankComputesOn) {
  EmulatedRanks ranks;
  const rt::SyncDevice device = ranks.device({"onebit"});
  const Choices choices = choose_on_all(compiled_library("onebit"),
                                        [&](rt::AutoPlanInputs& inputs, auto&, std::uint32_t) {
                                          inputs.request.tensors[0].rows = 3000;
                                          inputs.gradients[0].num_elems = 3000;
                                          inputs.session.device = device;
                                          inputs.session.timeout = std::chrono::minutes(2);
                                          inputs.trial_seconds = 0.2;
                                        });
  for (const std::string& error : choices.errors) EXPECT_EQ(error, "");
  for (const rt::AutoPlan& plan : choices.plans) {
    EXPECT_TRUE(are_alike(plan.request, choices.plans[0].request));
  }
  ASSERT_TRUE(choices.plans[0].choice);
  EXPECT_GT(choices.plans[0].choice->chosen.cost.encode_seconds, 0);
}

TEST(AutoPlan, AFailureOnAnyRankIsOneOnAll) {
  for (const std::uint32_t failing : {0U, 1U}) {
    // The first exchanges come before trials; later ones belong to them.
    for (const std::uint64_t at : {0U, 1U, 4U, 9U}) {
      const Choices choices = choose_on_all(
          compiled_library("onebit"), [&](auto&, FaultyTransport& transport, std::uint32_t rank) {
            if (rank == failing) transport.arm(FaultKind::Fails, at);
          });
      for (const std::string& error : choices.errors) EXPECT_NE(error, "") << failing << " " << at;
    }
  }
  const Choices choices = choose_on_all(compiled_library("onebit"),
                                        [](rt::AutoPlanInputs& inputs, auto&, std::uint32_t rank) {
                                          if (rank == 0) inputs.network->model.world = kWorld + 1;
                                        });
  for (const std::string& error : choices.errors) {
    EXPECT_NE(error.find("the network has 4"), std::string::npos) << error;
  }
}

TEST(PlanTrials, TellPlansApart) {
  const auto program = compiled_library("onebit");
  rt::PlanRequest compressed = make_request(program);
  compressed.plan = "allgather";
  rt::PlanRequest dense = compressed;
  for (rt::PlanTensor& tensor : dense.tensors) tensor.codec = rt::kDense;
  std::vector<std::shared_ptr<const rt::Plan>> plans;
  for (const rt::PlanRequest& request : {dense, compressed}) {
    auto plan = rt::build_plan(request);
    ASSERT_TRUE(plan);
    plans.push_back(std::make_shared<rt::Plan>(std::move(*plan)));
  }
  std::vector<std::vector<double>> seconds(kWorld);
  rt::LoopbackWorld world(kWorld, kSlow);
  run_ranks(world, kWorld, [&](const RankBody& own) {
    const Gradients gradients(compressed, own.rank);
    rt::TrialOptions options;
    options.session = session_options(program, std::chrono::seconds(10));
    const auto tried = rt::try_plans(plans, gradients.views(), options, own.transport);
    ASSERT_TRUE(tried) << tried.error().message;
    seconds[own.rank] = *tried;
  });
  EXPECT_EQ(seconds[1], seconds[0]);
  EXPECT_EQ(seconds[2], seconds[0]);
  ASSERT_EQ(seconds[0].size(), 2U);
  // 80 KB to each of two others take the link 80 ms, a thirtieth of that 3 ms.
  EXPECT_GT(seconds[0][0], 0.07);
  EXPECT_GT(seconds[0][0], seconds[0][1]);
}

}  // namespace
}  // namespace cinch::testing
