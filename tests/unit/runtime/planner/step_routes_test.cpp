// Steps planned by group: never worse than simpler plans, and what must come out where it is known.
#include "runtime/planner/routes/step_routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "runtime/plan/check_plan.h"
#include "runtime/planner/choose_plan.h"

namespace cinch::rt {
namespace {

CodecSpeed linear_speed(double per_call, double per_elem) {
  const CostCurve curve{{{0, per_call}, {1e6, per_call + 1e6 * per_elem}}};
  return {curve, curve, curve, curve, curve, curve, 1, {}};
}

CodecFacts codec(const char* name, std::int64_t parts) {
  return {name, true, false, true,
          [parts](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
            return static_cast<std::uint64_t>(4 * rows * cols / parts + 64);
          }};
}

// Of elements; the gap ahead of each is `gap` seconds.
StepRoutesRequest step_of(std::uint32_t world, const std::vector<std::int64_t>& elems, double gap,
                          const LinkShape& links) {
  StepRoutesRequest request;
  request.plans.world = world;
  request.plans.codecs = {codec("eighth", 8), codec("hundredth", 100)};
  request.costs.network = shaped_network(world, links);
  request.costs.codecs = {linear_speed(1e-6, 1e-9), linear_speed(1e-6, 5e-9)};
  request.costs.dense = linear_speed(1e-6, 1e-10);
  request.costs.clear = request.costs.dense.encode;
  for (std::size_t t = 0; t < elems.size(); ++t) {
    request.plans.tensors.push_back({"t" + std::to_string(t), elems[t], 1});
    request.codecs.push_back({0, 1});
    request.costs.ready_seconds.push_back(gap * static_cast<double>(t + 1));
  }
  return request;
}

StepRoutes planned(const StepRoutesRequest& request) {
  auto found = plan_step(request);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found ? std::move(*found) : StepRoutes();
}

double predicted(const StepRoutes& found, std::string_view name) {
  const auto step = std::ranges::find(found.compared, name, &PlannedStep::name);
  EXPECT_NE(step, found.compared.end()) << name;
  return step == found.compared.end() ? 0 : step->cost.seconds;
}

bool compresses(const StepRoutes& found) {
  return std::ranges::any_of(found.chosen.request.tensors,
                             [](const PlanTensor& tensor) { return tensor.codec != kDense; });
}

constexpr LinkShape kSlowLinks{50e-6, 12.5e6}, kUsualLinks{20e-6, 1.25e9}, kFastLinks{1e-8, 1e14};

// What the issue of any plan must hold, whatever the numbers are.
void check(const StepRoutesRequest& request, const StepRoutes& found) {
  const double chosen = found.chosen.cost.seconds;
  for (const PlannedStep& each : found.compared) {
    // A simpler plan may win a tie.
    if (each.name != "f16") EXPECT_LE(chosen, each.cost.seconds * 1.0102) << each.name;
    const auto plan = build_plan(each.request);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_TRUE(check_plan(*plan));
    const auto again = estimate_cost(*plan, request.costs);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->seconds, each.cost.seconds) << each.name;
  }
  EXPECT_LE(found.bound_seconds, found.lanes_seconds);
  EXPECT_LE(found.in_order_bound_seconds, found.in_order_seconds);
  // Each tensor is in one group, and groups end where the step ends.
  std::vector<std::uint32_t> tensors;
  double exposed = 0, ready = 0;
  for (const PlannedGroup& group : found.groups) {
    tensors.insert(tensors.end(), group.tensors.begin(), group.tensors.end());
    EXPECT_GE(group.exposed_seconds, 0);
    exposed += group.exposed_seconds;
    ready = std::max(ready, group.ready_seconds);
  }
  std::ranges::sort(tensors);
  for (std::uint32_t t = 0; t < tensors.size(); ++t) EXPECT_EQ(tensors[t], t);
  EXPECT_EQ(tensors.size(), request.plans.tensors.size());
  EXPECT_NEAR(exposed + ready, chosen, 1e-6);
}

TEST(StepRoutes, AreNeverWorseThanSimplerPlans) {
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    std::vector<std::int64_t> elems(3 + random() % 6);
    for (std::int64_t& each : elems) each = 1 << (8 + random() % 14);
    const LinkShape links = i % 3 == 0 ? kSlowLinks : i % 3 == 1 ? kUsualLinks : kFastLinks;
    const double gap = 1e-4 * static_cast<double>(random() % 50);
    const auto request = step_of(2 + random() % 3, elems, gap, links);
    check(request, planned(request));
  }
}

TEST(StepRoutes, CompressNothingOnAnInfinitelyFastNetwork) {
  const auto request = step_of(4, {1 << 20, 5000, 1 << 18}, 1e-3, kFastLinks);
  const StepRoutes found = planned(request);
  EXPECT_FALSE(compresses(found));
  check(request, found);
}

TEST(StepRoutes, CompressOnASlowNetwork) {
  const auto request = step_of(4, {1 << 20, 5000, 1 << 18}, 1e-3, kSlowLinks);
  const StepRoutes found = planned(request);
  EXPECT_TRUE(compresses(found));
  EXPECT_LT(found.chosen.cost.seconds, 0.2 * predicted(found, "f32"));
  check(request, found);
}

// A call of the program takes longer than a small tensor's exchange in f32, and less than a large
// one's.
TEST(StepRoutes, ChooseForEachTensor) {
  auto request = step_of(2, {1 << 13, 1 << 22}, 0, kSlowLinks);
  request.costs.codecs = {linear_speed(2e-2, 1e-9), linear_speed(1, 1e-8)};
  const StepRoutes found = planned(request);
  check(request, found);
  EXPECT_EQ(found.groups.front().way.codec, kDense);
  EXPECT_EQ(found.groups.back().way.codec, 0U);
  EXPECT_LT(found.chosen.cost.seconds, predicted(found, "eighth"));
}

// Encoding on the device takes more from the backward pass than it saves; the CPUs have time.
TEST(StepRoutes, GoOverCpusWhereTheDeviceIsBusy) {
  auto request = step_of(2, {1 << 20, 1 << 18, 1 << 20}, 0.03, kSlowLinks);
  request.costs.is_on_device = true;
  request.costs.threads = 0;
  request.costs.codecs = {linear_speed(1e-6, 1e-7), linear_speed(1e-6, 1e-7)};
  const StepRoutes on_device = planned(request);
  check(request, on_device);
  CpuSpeeds cpus;
  cpus.codecs = {linear_speed(1e-6, 1e-8), linear_speed(1e-6, 1e-8)};
  cpus.dense = request.costs.dense;
  cpus.clear = request.costs.clear;
  cpus.copy_out = cpus.copy_in = linear_speed(1e-5, 2e-10).encode;
  request.costs.on_cpus = cpus;
  const StepRoutes found = planned(request);
  check(request, found);
  const auto is_on_cpus = [](const PlannedGroup& group) {
    return group.way.route.device == OptionDevice::Cpu;
  };
  EXPECT_TRUE(std::ranges::any_of(found.groups, is_on_cpus));
  EXPECT_LT(found.chosen.cost.seconds, 0.9 * on_device.chosen.cost.seconds);
  // Copies that take forever are not made.
  request.costs.on_cpus->copy_out = linear_speed(1, 1e-3).encode;
  const StepRoutes without = planned(request);
  EXPECT_TRUE(std::ranges::none_of(without.groups, is_on_cpus));
  EXPECT_NEAR(without.chosen.cost.seconds, on_device.chosen.cost.seconds, 1e-12);
}

// Between ranks of a machine bytes take as long as between machines, so payloads travel there, too.
TEST(StepRoutes, TakeOptionsBetweenMachinesThatAreNotTheUsualOne) {
  auto request = step_of(8, {1 << 20, 1 << 18}, 1e-3, kSlowLinks);
  request.plans.ranks_per_machine = 4;
  request.costs.network.ranks_per_machine = 4;
  request.costs.network.within = request.costs.network.of(ExchangeKind::Send);
  request.costs.network.within.line = {1e-6, 2e-8};
  for (FittedLine& fitted : request.costs.network.lines) fitted.line.slope *= 20;
  const StepRoutes found = planned(request);
  check(request, found);
  const auto is_unusual = [](const PlannedGroup& group) {
    return group.way.route.plan == "hierarchical" &&
           group.way.route.option != usual_hierarchical_option();
  };
  EXPECT_TRUE(std::ranges::any_of(found.groups, is_unusual));
}

TEST(StepRoutes, WithoutProgramsAreThePlanInF32) {
  auto request = step_of(3, {1 << 20, 1 << 12, 1 << 19}, 1e-3, kUsualLinks);
  for (auto& codecs : request.codecs) codecs.clear();
  const StepRoutes found = planned(request);
  EXPECT_FALSE(compresses(found));
  ChoiceSpace space;
  space.piece_bytes = request.piece_bytes;
  const auto single = choose_plan(request.plans, request.costs, space);
  ASSERT_TRUE(single);
  EXPECT_LE(found.chosen.cost.seconds, single->chosen.cost.seconds * 1.0102);
  EXPECT_EQ(predicted(found, "f32"), single->chosen.cost.seconds);
}

// Where compressing costs nothing and sends nothing, the step is as long as the backward pass.
TEST(StepRoutes, FreeCompressionMeetsTheBound) {
  auto request = step_of(4, {1 << 20, 1 << 20}, 1e-2, kSlowLinks);
  request.plans.codecs = {codec("nothing", INT64_C(1) << 40), codec("nothing", INT64_C(1) << 40)};
  request.costs.codecs = {linear_speed(0, 0), linear_speed(0, 0)};
  request.costs.clear = {};
  const StepRoutes found = planned(request);
  EXPECT_NEAR(found.lanes_seconds, found.bound_seconds, 1e-4);
  EXPECT_NEAR(found.chosen.cost.seconds, 2e-2, 1e-3);
}

TEST(StepRoutes, HalfIsComparedAndNotChosen) {
  auto request = step_of(2, {1 << 20}, 1e-3, kSlowLinks);
  request.codecs[0] = {0};
  request.half_codec = 1;
  const StepRoutes found = planned(request);
  EXPECT_LT(predicted(found, "f16"), found.chosen.cost.seconds);
  for (const PlanTensor& tensor : found.chosen.request.tensors) EXPECT_EQ(tensor.codec, 0U);
}

// Tensors stand in the order of a forward pass, say.
TEST(StepRoutes, TensorsMayStandInAnyOrder) {
  auto request = step_of(3, {1 << 20, 1 << 18, 100, 1 << 12, 1 << 19}, 0, kUsualLinks);
  request.costs.ready_seconds = {0.009, 0.004, 0.008, 0.001, 0.002};
  const StepRoutes found = planned(request);
  check(request, found);
  for (std::size_t g = 1; g < found.groups.size(); ++g) {
    EXPECT_GE(found.groups[g].ready_seconds, found.groups[g - 1].ready_seconds);
  }
  EXPECT_EQ(found.groups.back().ready_seconds, 0.009);
}

TEST(StepRoutes, SmallTensorsAreSentTogether) {
  const auto request = step_of(2, std::vector<std::int64_t>(3000, 10), 1e-5, kUsualLinks);
  const StepRoutes found = planned(request);
  EXPECT_LE(found.groups.size(), 8U);
  check(request, found);
}

TEST(StepRoutes, RefuseWhatTheyCannotPlan) {
  auto none = step_of(2, {}, 0, kUsualLinks);
  EXPECT_EQ(plan_step(none).error().message, "no tensor is to be planned");
  auto many = step_of(2, std::vector<std::int64_t>(kMostPlannedTensors + 1, 1), 0, kUsualLinks);
  EXPECT_EQ(plan_step(many).error().message,
            "100001 tensors: at most 100000 are planned, so join small ones");
  auto uneven = step_of(2, {5, 6}, 0, kUsualLinks);
  uneven.codecs.pop_back();
  EXPECT_FALSE(plan_step(uneven));
  EXPECT_FALSE(plan_by_group(uneven));
}

TEST(StepRoutes, SpansAreThoseOfThePlan) {
  const auto request = step_of(3, {1 << 18, 1 << 20}, 1e-3, kUsualLinks);
  const StepRoutes found = planned(request);
  ASSERT_EQ(found.spans.size(), 3U);
  double last = 0;
  for (std::size_t rank = 0; rank < found.spans.size(); ++rank) {
    ASSERT_EQ(found.spans[rank].size(), found.plan.ranks[rank].tasks.size());
    for (std::size_t t = 0; t < found.spans[rank].size(); ++t) {
      const TaskSpan& span = found.spans[rank][t];
      EXPECT_LE(span.begin, span.end);
      last = std::max(last, span.end);
      for (const std::uint32_t earlier : found.plan.ranks[rank].tasks[t].after) {
        EXPECT_LE(found.spans[rank][earlier].end, span.begin + 1e-9);
      }
    }
  }
  EXPECT_NEAR(last, found.chosen.cost.seconds, 1e-9);
}

// A plan by group is one of the choices of "auto".
TEST(StepRoutes, CompeteWithOtherPlans) {
  auto request = step_of(4, {1 << 20, 1 << 18}, 1e-3, kSlowLinks);
  for (PlanTensor& tensor : request.plans.tensors) tensor.codec = 0;
  for (auto& codecs : request.codecs) codecs = {0};
  const auto found = plan_by_group(request);
  ASSERT_TRUE(found) << found.error().message;
  auto choice = choose_plan(request.plans, request.costs);
  ASSERT_TRUE(choice);
  const std::size_t before = choice->candidates.size();
  PlanCost cost = found->cost;
  cost.seconds = choice->chosen.cost.seconds * 0.98;  // less than predictions can tell
  add_by_group(*choice, found->request, cost);
  EXPECT_EQ(choice->candidates.size(), before + 1);
  EXPECT_TRUE(choice->chosen.routes.empty());
  cost.seconds = choice->chosen.cost.seconds * 0.9;
  add_by_group(*choice, found->request, cost);
  ASSERT_FALSE(choice->chosen.routes.empty());
  EXPECT_TRUE(choice->reason.ends_with(": chosen")) << choice->reason;
  EXPECT_NE(choice->reason.find("a route for each group of tensors"), std::string::npos);
  const auto made = build_plan(request_of(request.plans, choice->chosen));
  const auto wanted = build_plan(found->request);
  ASSERT_TRUE(made && wanted);
  EXPECT_EQ(*made, *wanted);
}

}  // namespace
}  // namespace cinch::rt
