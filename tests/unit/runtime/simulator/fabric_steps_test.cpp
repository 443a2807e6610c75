// Steps over a fabric against closed formulas, and against links by sender and receiver.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/planner/planner.h"
#include "runtime/simulator/fabric_step.h"

namespace cinch::rt {
namespace {

constexpr double kBytesPerSecond = 1.25e9, kLatency = 2e-6;

// All ranks on one switch.
Topology one_switch(std::uint32_t ranks) {
  Topology::Shape shape;
  shape.machines_per_leaf = ranks;
  shape.nic = shape.machine = shape.uplink = {kBytesPerSecond, 1'000'000};
  shape.machines = {ranks};
  return *Topology::make(shape);
}

CodecFacts quarter() {
  return {"quarter", true, false, true,
          [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
            return static_cast<std::uint64_t>(rows * cols);
          }};
}

CostInputs free_work(std::uint32_t world, const Topology& topology) {
  CostInputs inputs;
  inputs.network = shaped_network(world, {kLatency, kBytesPerSecond});
  inputs.codecs = {{}};
  inputs.cores = 1;
  inputs.make_links = [&topology, world] { return std::make_unique<FabricLinks>(topology, world); };
  return inputs;
}

PlanRequest request_of(const char* plan, std::uint32_t world, std::int64_t elems,
                       std::uint32_t codec) {
  PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.codecs = {quarter()};
  request.tensors = {{"a", elems, 1, codec}};
  request.piece_bytes = UINT64_C(1) << 40;
  return request;
}

double seconds(const PlanRequest& request, const CostInputs& inputs) {
  const auto plan = build_plan(request);
  EXPECT_TRUE(plan) << plan.error().message;
  const auto cost = estimate_cost(*plan, inputs);
  EXPECT_TRUE(cost) << cost.error().message;
  return cost ? cost->seconds : 0;
}

TEST(FabricSteps, MeetClosedFormulasOnOneSwitch) {
  for (const std::uint32_t world : {2U, 4U, 8U, 16U}) {
    const Topology topology = one_switch(world);
    const CostInputs inputs = free_work(world, topology);
    const std::int64_t elems = std::int64_t{world} << 20;  // shares are then equal
    const double n = world, bytes = static_cast<double>(elems);
    // Payloads of a byte an element: to owners and back, each a share of one n-th from each rank.
    EXPECT_NEAR(seconds(request_of("two_shot", world, elems, 0), inputs),
                2 * (kLatency + bytes * (n - 1) / n / kBytesPerSecond), 1e-9)
        << world;
    // The same in f32, where the transport adds.
    EXPECT_NEAR(seconds(request_of("allreduce", world, elems, kDense), inputs),
                2 * (kLatency + 4 * bytes * (n - 1) / n / kBytesPerSecond), 1e-9)
        << world;
    // Everybody has the payloads of all others.
    EXPECT_NEAR(seconds(request_of("allgather", world, elems, 0), inputs),
                kLatency + bytes * (n - 1) / kBytesPerSecond, 1e-9)
        << world;
    // 2 (n - 1) hops, of an n-th each.
    EXPECT_NEAR(seconds(request_of("ring", world, elems, kDense), inputs),
                2 * (n - 1) * (kLatency + 4 * bytes / n / kBytesPerSecond), 1e-8)
        << world;
    // Up a binomial tree level by level; down, each rank sends to all below it at once, which share
    // its link.
    const double levels = std::log2(n), whole = 4 * bytes / kBytesPerSecond;
    EXPECT_NEAR(seconds(request_of("tree", world, elems, kDense), inputs),
                2 * levels * kLatency + (levels + levels * (levels + 1) / 2) * whole, 1e-8)
        << world;
  }
}

// Without contention beyond ports, links by sender and receiver say the same.
TEST(FabricSteps, AgreeWithLinksBySenderAndReceiver) {
  const Topology topology = one_switch(6);
  CostInputs over_links = free_work(6, topology);
  CostInputs plain = over_links;
  plain.make_links = nullptr;
  for (const char* plan : {"two_shot", "ring", "allgather"}) {
    const PlanRequest request = request_of(plan, 6, 6 << 18, 0);
    const double found = seconds(request, over_links), wanted = seconds(request, plain);
    EXPECT_NEAR(found, wanted, 0.02 * wanted) << plan;
  }
}

TEST(FabricSteps, ALeafWithHalfTheUplinksTakesTwiceAsLong) {
  Topology::Shape shape;
  shape.machines_per_leaf = 4;
  shape.spines = 4;
  shape.nic = shape.machine = {kBytesPerSecond, 0};
  shape.uplink = {kBytesPerSecond, 0};
  shape.machines = {8};
  const Topology full = *Topology::make(shape);
  shape.uplink.bytes_per_second /= 4;
  const Topology thin = *Topology::make(shape);
  // All to all: 4 of 7 others are behind the spines, 16 of the 28 from a leaf, over 4 links.
  const PlanRequest request = request_of("allgather", 8, 1'000'000, 0);
  EXPECT_NEAR(seconds(request, free_work(8, full)), 7e6 / kBytesPerSecond, 1e-9);
  EXPECT_NEAR(seconds(request, free_work(8, thin)), 16e6 / kBytesPerSecond, 1e-9);
}

TEST(FabricSteps, ASlowRankIsWaitedFor) {
  const Topology topology = one_switch(4);
  CostInputs inputs = free_work(4, topology);
  inputs.codecs[0].encode = {{{0, 0}, {1e6, 1e-2}}};
  const PlanRequest request = request_of("allgather", 4, 1'000'000, 0);
  const double before = seconds(request, inputs);
  inputs.slowness = {1, 1, 3, 1};
  EXPECT_NEAR(seconds(request, inputs), before + 2e-2, 3e6 / kBytesPerSecond);
  EXPECT_GT(seconds(request, inputs), before + 1.7e-2);
}

// Two messages of one rank to another share its link: the short one is there first.
TEST(FabricSteps, MessagesOfOneWayEndEachByItself) {
  const Topology topology = one_switch(2);
  PlanRequest request = request_of("tree", 2, 1 << 20, kDense);
  request.tensors.push_back({"b", 1 << 19, 1, kDense});
  request.piece_bytes = 4 << 20;
  const auto plan = build_plan(request);
  ASSERT_TRUE(plan);
  PlanSpans spans;
  ASSERT_TRUE(estimate_cost(*plan, free_work(2, topology), &spans));
  std::vector<double> ends;
  for (std::size_t t = 0; t < plan->ranks[0].tasks.size(); ++t) {
    const Task& task = plan->ranks[0].tasks[t];
    const bool receives = task.kind == TaskKind::Exchange && task.exchange == ExchangeKind::Receive;
    if (receives) ends.push_back(spans[0][t].end);
  }
  ASSERT_GE(ends.size(), 2U);
  std::ranges::sort(ends);
  EXPECT_NEAR(ends[0], double{4 << 20} / kBytesPerSecond + kLatency, 1e-9);
}

// Of more picoseconds than a double counts one by one.
TEST(FabricSteps, ThatTakeHoursEnd) {
  Topology::Shape shape = one_switch(3).shape();
  shape.nic.bytes_per_second = 3e3;
  const Topology topology = *Topology::make(shape);
  for (const char* plan : {"allgather", "ring", "tree"}) {
    const PlanRequest request = request_of(plan, 3, 100'000'007, kDense);
    EXPECT_GT(seconds(request, free_work(3, topology)), 1e5) << plan;
  }
}

// 16 leaves of 4 hosts with 4 spines: coloured flows load all links alike, as sprayed ones do.
TEST(FabricSteps, FixedWaysLoadLinksAsTheirRuleSays) {
  Topology::Shape shape;
  shape.machines_per_leaf = 4;
  shape.spines = 4;
  shape.nic = shape.machine = shape.uplink = {kBytesPerSecond, 0};
  shape.machines = {64};
  const Topology topology = *Topology::make(shape);
  const auto took = [&](const char* plan, RoutingRule rule) {
    FabricStep step{request_of(plan, 64, 64 << 14, kDense), free_work(64, topology)};
    step.routing = {rule, 3};
    const auto made = simulate_on_fabric(topology, std::move(step));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    EXPECT_EQ(made->routing.has_value(), rule != RoutingRule::Sprayed);
    return made->cost.seconds;
  };
  for (const char* plan : {"allgather", "ring"}) {
    const double sprayed = took(plan, RoutingRule::Sprayed);
    EXPECT_NEAR(took(plan, RoutingRule::Coloured), sprayed, 1e-9) << plan;
    EXPECT_NEAR(took(plan, RoutingRule::ByHost), sprayed, 1e-9) << plan;
  }
  // Hashed flows meet on links.
  EXPECT_GT(took("allgather", RoutingRule::Hashed), 1.05 * took("allgather", RoutingRule::Sprayed));
}

}  // namespace
}  // namespace cinch::rt
