// Classes of ranks against every rank for itself.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/simulator/fabric_step.h"

namespace cinch::rt {
namespace {

constexpr double kNanosecond = 1e-9;

struct Fabric {
  std::uint32_t ranks = 32, on_machine = 1, in_leaf = 4;
  double oversubscription = 1;
  std::uint32_t leaves_in_pod = 0;
  std::vector<Topology::Change> changes = {};
  Picoseconds message = 0;
};

Topology topology_of(const Fabric& fabric) {
  Topology::Shape shape;
  shape.ranks_per_machine = fabric.on_machine;
  shape.machines_per_leaf = fabric.in_leaf;
  shape.spines = 4;
  shape.machine = {1e11, 500'000};
  shape.nic = {12.5e9, 1'000'000};
  const double of_leaf = 12.5e9 * fabric.on_machine * fabric.in_leaf / fabric.oversubscription;
  shape.uplink = {of_leaf / 4, 1'000'000};
  shape.leaves_per_pod = fabric.leaves_in_pod;
  shape.core = {of_leaf / 8, 2'000'000};
  shape.machines = {fabric.ranks / fabric.on_machine};
  shape.changes = fabric.changes;
  auto made = Topology::make(shape);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return std::move(*made);
}

CodecFacts fourth() {
  return {"fourth", true, false, true,
          [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
            return static_cast<std::uint64_t>(rows * cols);
          }};
}

FabricStep step_of(const char* plan, const Fabric& fabric, std::vector<PlanTensor> tensors) {
  FabricStep step;
  step.request.plan = plan;
  step.request.world = fabric.ranks;
  step.request.ranks_per_machine = fabric.on_machine;
  step.request.codecs = {fourth()};
  step.request.tensors = std::move(tensors);
  CostInputs& inputs = step.inputs;
  inputs.network = shaped_network(fabric.ranks, {1e-6, 12.5e9});
  inputs.cores = 1;
  const CostCurve encode{{{0, 1e-6}, {1e6, 1e-3}}}, add{{{0, 3e-7}, {1e6, 4e-4}}};
  inputs.codecs = {{encode, add, add, add}};
  inputs.dense = {add, add, add, add};
  inputs.clear = {{{0, 1e-7}, {1e6, 1e-4}}};
  for (std::size_t i = 0; i < kMeasuredKinds.size(); ++i) {
    const bool is_message = kMeasuredKinds[i] == ExchangeKind::Send;
    inputs.exchange_work[i].base =
        static_cast<double>(fabric.message) / 1e12 * (is_message ? 1 : fabric.ranks - 1);
  }
  // Rounds as classes have them.
  inputs.joins_rounds = std::string_view(plan) != "ring";
  return step;
}

double seconds(const Topology& topology, FabricStep step, bool has_classes,
               std::uint32_t most_classes = UINT32_MAX) {
  step.has_classes = has_classes;
  const auto made = simulate_on_fabric(topology, std::move(step));
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  if (!made) return 0;
  if (has_classes) EXPECT_LE(made->num_classes, most_classes);
  return made->cost.seconds;
}

void expect_same(const Topology& topology, const FabricStep& step, std::uint32_t most_classes) {
  const double classes = seconds(topology, step, true, most_classes);
  const double ranks = seconds(topology, step, false);
  EXPECT_GT(ranks, 0);
  EXPECT_NEAR(classes, ranks, kNanosecond);
}

std::vector<PlanTensor> one_tensor(std::uint32_t codec) {
  return {{"a", 1 << 20, 1, codec}};
}

TEST(RankClasses, TakeAsLongAsEveryRankForItself) {
  for (const char* plan : {"two_shot", "allgather", "allreduce"}) {
    for (const std::uint32_t ranks : {32U, 64U, 128U}) {
      for (const double oversubscription : {1.0, 2.0}) {
        SCOPED_TRACE(testing::Message() << plan << ' ' << ranks << ' ' << oversubscription);
        const Fabric fabric{ranks, 1, 16, oversubscription};
        const Topology topology = topology_of(fabric);
        FabricStep step = step_of(plan, fabric, one_tensor(ranks == 64 ? kDense : 0));
        expect_same(topology, step, 1);
        // Two in one leaf, one in another.
        step.slowness.assign(ranks, 1);
        step.slowness[3] = step.slowness[5] = step.slowness[20] = 2;
        expect_same(topology, step, 6);
      }
    }
  }
}

TEST(RankClasses, OfMachinesTakeAsLongAsEveryRankForItself) {
  for (const std::uint32_t ranks : {32U, 64U, 128U}) {
    for (const double oversubscription : {1.0, 2.0}) {
      SCOPED_TRACE(testing::Message() << ranks << ' ' << oversubscription);
      const Picoseconds message = oversubscription > 1 ? 300'000 : 0;
      const Fabric fabric{ranks, 4, 4, oversubscription, 0, {}, message};
      const Topology topology = topology_of(fabric);
      const std::uint32_t codec = ranks == 64 ? kDense : 0;
      FabricStep step = step_of("hierarchical", fabric, one_tensor(codec));
      expect_same(topology, step, 4);
      step.slowness.assign(ranks, 1);
      step.slowness[3] = step.slowness[5] = step.slowness[20] = 2;
      expect_same(topology, step, 28);
    }
  }
}

TEST(RankClasses, OfARingArePlacesUnderALeaf) {
  for (const std::uint32_t ranks : {32U, 64U, 128U}) {
    for (const double oversubscription : {1.0, 2.0}) {
      SCOPED_TRACE(testing::Message() << ranks << ' ' << oversubscription);
      const Fabric fabric{ranks, 2, 8, oversubscription, 0, {}, 200'000};
      const Topology topology = topology_of(fabric);
      FabricStep step = step_of("ring", fabric, one_tensor(ranks == 64 ? kDense : 0));
      expect_same(topology, step, 16);
      if (ranks > 64) continue;
      // Then no two ranks are alike.
      step.slowness.assign(ranks, 1);
      step.slowness[3] = 2;
      expect_same(topology, step, ranks);
    }
  }
  const Fabric one_switch{32, 1, 32};
  expect_same(topology_of(one_switch), step_of("ring", one_switch, one_tensor(0)), 1);
}

// Several bundles, which overlap, and small tensors that single ranks own.
TEST(RankClasses, KnowTensorsThatOneRankOwns) {
  const std::vector<PlanTensor> tensors = {
      {"a", 1 << 21, 1, 0}, {"b", 3000, 1, 0},     {"c", 3000, 1, 0},     {"d", 500, 1, 0},
      {"e", 1 << 20, 1, 0}, {"f", 700, 1, kDense}, {"g", 900, 1, kDense}, {"h", 3000, 1, 0}};
  for (const char* plan : {"two_shot", "allgather", "allreduce", "hierarchical"}) {
    SCOPED_TRACE(plan);
    const bool has_machines = std::string_view(plan) == "hierarchical";
    const Fabric fabric{64, has_machines ? 4U : 1U, 4, 2};
    const Topology topology = topology_of(fabric);
    FabricStep step = step_of(plan, fabric, tensors);
    expect_same(topology, step, 32);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      step.inputs.ready_seconds.push_back(1e-4 * static_cast<double>(t + 1));
    }
    expect_same(topology, step, 32);
  }
}

TEST(RankClasses, KnowLinksThatAreDownOrSlow) {
  const Fabric fabric{64, 1, 8, 2, 0, {{"leaf3-spine1", 0}, {"leaf1-spine0", 0.5}, {"rank9", 0.5}}};
  const Topology topology = topology_of(fabric);
  for (const char* plan : {"two_shot", "allgather"}) {
    expect_same(topology, step_of(plan, fabric, one_tensor(0)), 5);
  }
}

TEST(RankClasses, KnowPodsAndSites) {
  const Fabric fabric{64, 2, 4, 2, 2};
  const Topology topology = topology_of(fabric);
  for (const char* plan : {"two_shot", "ring", "hierarchical"}) {
    SCOPED_TRACE(plan);
    expect_same(topology, step_of(plan, fabric, one_tensor(0)), 16);
  }
  Topology::Shape shape = topology_of({48, 1, 4, 1}).shape();
  shape.machines = {16, 32};
  shape.joins = {{0, 1, {1.25e9, 30'000'000}, 4e6}};
  const Topology sites = *Topology::make(shape);
  Fabric both{48};
  for (const char* plan : {"two_shot", "allgather"}) {
    SCOPED_TRACE(plan);
    FabricStep step = step_of(plan, both, {{"a", 3 << 18, 1, 0}});
    expect_same(sites, step, 2);
  }
}

TEST(RankClasses, OfRoutesSideBySide) {
  const Fabric fabric{64, 4, 4, 2};
  FabricStep step = step_of(
      "routes", fabric, {{"a", 1 << 20, 1, 0}, {"b", 1 << 20, 1, 0}, {"c", 1 << 20, 1, kDense}});
  step.request.routes = {{.plan = "two_shot"}, {.plan = "hierarchical"}, {.plan = "allgather"}};
  step.request.route_of = {0, 1, 2};
  expect_same(topology_of(fabric), step, 4);
}

TEST(RankClasses, RefuseWhereNoTwoRanksAreAlike) {
  const Fabric fabric{1024, 1, 16};
  const Topology topology = topology_of(fabric);
  const auto refusal = [&](const char* plan, bool is_slow) {
    FabricStep step = step_of(plan, fabric, one_tensor(0));
    if (is_slow) {
      step.slowness.assign(1024, 1);
      step.slowness[0] = 2;
      step.request.tensors[0].rows = 1 << 26;
    }
    step.has_classes = true;
    const auto made = simulate_on_fabric(topology, std::move(step));
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(refusal("tree", false),
            "tree: no two of 1024 ranks are alike, and at most 512 are simulated one by one");
  EXPECT_EQ(refusal("ring", true),
            "a ring of 1024 ranks of which 1024 are different takes about 8e+08 tasks, and at most "
            "2e+08 are simulated");
  EXPECT_EQ(refusal("ring", false), "");
  FabricStep small = step_of("ring", fabric, {{"bias", 100, 1, 0}});
  small.has_classes = true;
  EXPECT_EQ(simulate_on_fabric(topology, std::move(small)).error().message,
            "ring: tensors so small that one of 1024 ranks owns them whole, so no two ranks are "
            "alike, and at most 512 are simulated one by one");
}

}  // namespace
}  // namespace cinch::rt
