// Predicted times of plans that can be computed by hand.
#include "runtime/planner/plan_cost.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

constexpr double kTolerance = 1e-6;  // links count whole nanoseconds

CostCurve per_element(double seconds) {
  return {{{0, 0}, {1, seconds}}};
}

// Links of a microsecond for each byte; programs that take whole seconds by thousands of elements.
CostInputs slow_inputs(std::uint32_t world) {
  CostInputs inputs;
  inputs.network = shaped_network(world, {0.5, 1e6});
  const CodecSpeed speed{
      per_element(4e-6), per_element(1e-6), per_element(2e-6), per_element(3e-6), {}, {}, 1};
  inputs.codecs = {speed};
  inputs.dense = {per_element(0), per_element(0), per_element(0), per_element(0), {}, {}, 1};
  inputs.clear = per_element(0);
  inputs.ranks_per_machine = 1;
  return inputs;
}

PlanRequest request_of(const std::string& plan, std::uint32_t world, std::int64_t elems) {
  const auto half = [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
    return 2 * static_cast<std::uint64_t>(rows * cols);
  };
  PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.codecs = {{"half", true, false, true, half}};
  request.tensors = {{"gradient", elems, 1, 0}};
  request.piece_bytes = std::uint64_t{1} << 40;
  return request;
}

PlanCost cost_of(const PlanRequest& request, const CostInputs& inputs) {
  const auto cost = estimate_cost(plan_of(request), inputs);
  EXPECT_TRUE(cost) << (cost ? "" : cost.error().message);
  return cost ? *cost : PlanCost();
}

TEST(CostCurve, GoesStraightBetweenSizesAndOn) {
  const CostCurve curve{{{100, 2}, {200, 3}, {400, 9}}};
  EXPECT_DOUBLE_EQ(curve.at(0), 1);
  EXPECT_DOUBLE_EQ(curve.at(100), 2);
  EXPECT_DOUBLE_EQ(curve.at(150), 2.5);
  EXPECT_DOUBLE_EQ(curve.at(300), 6);
  EXPECT_DOUBLE_EQ(curve.at(500), 12);
  EXPECT_DOUBLE_EQ((CostCurve{{{100, 2}}}.at(50)), 1);
  EXPECT_DOUBLE_EQ((CostCurve{}.at(50)), 0);
  // More elements never take less.
  EXPECT_DOUBLE_EQ((CostCurve{{{100, 2}, {200, 1}}}.at(400)), 2);
}

TEST(PlanCost, AddsUpTheStepsOfOnePiece) {
  // Encode 4 s; two others' payloads of 2e6 bytes: 0.5 + 4 s; three are decoded and added, 2 s
  // each; finish 3 s.
  const PlanCost cost = cost_of(request_of("allgather", 3, 1000000), slow_inputs(3));
  EXPECT_NEAR(cost.seconds, 4 + 4.5 + 6 + 3, kTolerance);
  EXPECT_NEAR(cost.encode_seconds, 4, kTolerance);
  EXPECT_NEAR(cost.network_seconds, 4.5, kTolerance);
  EXPECT_NEAR(cost.decode_seconds, 9, kTolerance);
}

TEST(PlanCost, KnowsDenseAllReduce) {
  PlanRequest request = request_of("allreduce", 4, 1000000);
  request.tensors[0].codec = kDense;
  // Two latencies, and three quarters of 4e6 bytes twice.
  EXPECT_NEAR(cost_of(request, slow_inputs(4)).seconds, 1 + 6, kTolerance);
}

TEST(PlanCost, OverlapsPieces) {
  // Half a million elements each. Encoded at 2 and 4; on the link from 2 and 4, for 1 s and the
  // latency; decoded from 4 on: decode_add is 1 s twice, finish 1.5.
  PlanRequest request = request_of("allgather", 2, 1000000);
  request.piece_bytes = 2000000;
  const PlanCost cost = cost_of(request, slow_inputs(2));
  EXPECT_NEAR(cost.seconds, 4 + 2 * 3.5, kTolerance);
  EXPECT_NEAR(cost.network_seconds, 3, kTolerance);
}

TEST(PlanCost, LetsMessagesShareTheServersLink) {
  // Rank 0 serves: two payloads of 2e6 bytes come through its link one after the other.
  PlanRequest request = request_of("ps", 3, 1000000);
  request.servers = {0};
  // Encode until 4; the own payload is decoded while the others come, at 6.5 and 8.5; the last one
  // is added at 10.5, finished at 13.5, encoded at 17.5; the results are out at 21.5, there at 22,
  // and decoded at 23.
  EXPECT_NEAR(cost_of(request, slow_inputs(3)).seconds, 23, kTolerance);
}

TEST(PlanCost, SlowsRanksThatShareCores) {
  const PlanRequest request = request_of("allgather", 4, 1000000);
  CostInputs inputs = slow_inputs(4);
  const PlanCost alone = cost_of(request, inputs);
  inputs.ranks_per_machine = 4;
  inputs.cores = 2;
  const PlanCost shared = cost_of(request, inputs);
  EXPECT_NEAR(shared.encode_seconds, 2 * alone.encode_seconds, kTolerance);
  EXPECT_NEAR(shared.decode_seconds, 2 * alone.decode_seconds, kTolerance);
  EXPECT_NEAR(shared.network_seconds, alone.network_seconds, kTolerance);
}

TEST(PlanCost, IssuesExchangesOneAfterTheOther) {
  // Encoded at 2 and 4; the thread has the first until 5 and the second until 8. They are there at
  // 6.5 and 9.5; the first one is decoded and finished at 10, and then the second at 13.5.
  PlanRequest request = request_of("allgather", 2, 1000000);
  request.piece_bytes = 2000000;
  CostInputs inputs = slow_inputs(2);
  inputs.exchange_work.fill({2, 1e-6});
  inputs.cores = 2;
  EXPECT_NEAR(cost_of(request, inputs).seconds, 13.5, 0.01);  // cuts lie at whole tiles
  // Two such threads and the computing ones share one core.
  inputs.cores = 1;
  inputs.ranks_per_machine = 2;
  EXPECT_GT(cost_of(request, inputs).seconds, 20);
}

TEST(PlanCost, SendsNoMoreThanIsUsed) {
  PlanRequest request = request_of("allgather", 2, 1000000);
  request.codecs[0].has_fixed_size = false;
  CostInputs inputs = slow_inputs(2);
  inputs.codecs[0].used_share = 0.25;
  request.lengths = LengthPolicy::Padded;
  EXPECT_NEAR(cost_of(request, inputs).network_seconds, 0.5 + 2, kTolerance);
  request.lengths = LengthPolicy::Exchanged;  // with an exchange of eight bytes before
  EXPECT_NEAR(cost_of(request, inputs).network_seconds, 0.5 + 8e-6 + 0.5 + 0.5, kTolerance);
}

TEST(PlanCost, IsNeverLessThanALane) {
  for (const std::string_view name : plan_names()) {
    for (const std::uint32_t world : {1U, 2U, 3U, 5U, 8U}) {
      PlanRequest request = request_of(std::string(name), world, 100003);
      request.piece_bytes = 30000;
      const PlanCost cost = cost_of(request, slow_inputs(world));
      EXPECT_GE(cost.seconds + kTolerance, cost.encode_seconds + cost.decode_seconds) << name;
      EXPECT_GE(cost.seconds + kTolerance, cost.network_seconds) << name;
      EXPECT_GT(cost.encode_seconds, 0) << name;
    }
  }
}

// Two tensors of a `sync` that takes a second, meets for two and takes three more: while one meets
// the other one computes.
TEST(PlanCost, PartsOfProtocolsOverlap) {
  PlanRequest request = request_of("ring", 2, 1000000);
  request.codecs[0].has_sync = true;
  request.codecs[0].can_cut = false;
  request.codecs[0].sync_rounds = [](std::int64_t rows,
                                     std::int64_t) -> Result<std::vector<SyncRound>> {
    const auto bytes = static_cast<std::uint64_t>(2 * rows);
    return std::vector<SyncRound>{
        {{CollectiveKind::AllReduce, RankReduction::Sum, 0}, {}, kF16, bytes, bytes}};
  };
  CostInputs inputs = slow_inputs(2);
  request.piece_bytes = 1000;  // a bundle for each tensor
  inputs.codecs[0].parts = {per_element(1e-6), per_element(3e-6)};
  constexpr double kBytes = 1e-5;
  EXPECT_NEAR(cost_of(request, inputs).seconds, 1 + 2 + 1 + 3, kBytes);
  EXPECT_NEAR(cost_of(request, inputs).decode_seconds, 4, kTolerance);
  request.tensors.push_back({"other", 1000000, 1, 0});
  const double both = cost_of(request, inputs).seconds;
  EXPECT_LT(both, 2 * (1 + 2 + 1 + 3) - 1);
  EXPECT_GE(both, 2 * 4);
  // In one bundle they meet once, for twice as long: nothing is computed meanwhile.
  request.piece_bytes = 4 << 20;
  EXPECT_NEAR(cost_of(request, inputs).seconds, 2 * 1 + 2 * 2 + 1 + 2 * 3, kBytes);
}

// Two machines of two ranks: halves go to the other rank of the machine and come back; between
// machines, quarters do, in half a second and one more for each.
TEST(PlanCost, KnowsLinksWithinMachines) {
  PlanRequest request = request_of("hierarchical", 4, 1'000'000);
  request.tensors[0].codec = kDense;
  request.ranks_per_machine = 2;
  CostInputs inputs = slow_inputs(4);
  const double one_network = cost_of(request, inputs).seconds;
  inputs.network.ranks_per_machine = 2;
  inputs.network.within.line = inputs.network.of(ExchangeKind::Send).line;
  const double alike = cost_of(request, inputs).seconds;
  EXPECT_LE(alike, one_network + kTolerance);  // both networks are used at once
  inputs.network.within.line = {0, 0};
  EXPECT_NEAR(cost_of(request, inputs).seconds, 3, 0.01);
  EXPECT_GT(alike, 3 + 2 * 0.5);
  // What ranks of all machines do together goes over the network between them.
  request.plan = "allreduce";
  const double together = cost_of(request, inputs).seconds;
  inputs.network.within.line = {1, 1};
  EXPECT_NEAR(cost_of(request, inputs).seconds, together, kTolerance);
}

TEST(PlanCost, RefusesWhatItCannotKnow) {
  EXPECT_FALSE(estimate_cost(plan_of(request_of("ring", 3, 10)), slow_inputs(2)));
  PlanRequest request = request_of("ring", 3, 10);
  request.codecs[0].has_sync = true;
  EXPECT_FALSE(estimate_cost(plan_of(request), slow_inputs(3)));
}

TEST(ReadyTimes, AStepOfOneTensorIsAsMuchLater) {
  for (const char* plan : {"allreduce", "allgather", "two_shot", "ring", "tree"}) {
    const PlanRequest request = request_of(plan, 4, 4000);
    CostInputs inputs = slow_inputs(4);
    const PlanCost at_once = cost_of(request, inputs);
    inputs.ready_seconds = {3.25};
    const PlanCost later = cost_of(request, inputs);
    EXPECT_NEAR(later.seconds, at_once.seconds + 3.25, kTolerance) << plan;
    EXPECT_NEAR(later.encode_seconds, at_once.encode_seconds, kTolerance) << plan;
    // Ranks wait for messages from the begin on.
    const bool has_messages = later.network_seconds > at_once.network_seconds + kTolerance;
    EXPECT_EQ(has_messages, std::string_view(plan) == "ring" || std::string_view(plan) == "tree");
  }
}

TEST(ReadyTimes, ATensorThatComesLateHidesTheOneBeforeIt) {
  PlanRequest request = request_of("two_shot", 2, 4000);
  request.piece_bytes = 16000;  // each tensor has a bundle of its own
  const double alone = cost_of(request, slow_inputs(2)).seconds;
  request.tensors.push_back({"second", 4000, 1, 0});
  CostInputs inputs = slow_inputs(2);
  inputs.ready_seconds = {0, 2 * alone};
  EXPECT_NEAR(cost_of(request, inputs).seconds, 3 * alone, kTolerance);
  // In the other order of times the plan's first tensor is the late one.
  inputs.ready_seconds = {2 * alone, 0};
  EXPECT_NEAR(cost_of(request, inputs).seconds, 3 * alone, kTolerance);
}

TEST(ReadyTimes, NoTensorThatComesLaterShortensAStep) {
  PlanRequest request = request_of("ring", 3, 3000);
  for (const char* name : {"b", "c", "d"}) request.tensors.push_back({name, 2000, 1, 0});
  request.piece_bytes = 8000;
  CostInputs inputs = slow_inputs(3);
  double before = cost_of(request, inputs).seconds;
  for (const double last : {0.0, 0.01, 0.1, 1.0, 10.0}) {
    inputs.ready_seconds = {last / 4, last / 3, last / 2, last};
    const double seconds = cost_of(request, inputs).seconds;
    EXPECT_GE(seconds, before - kTolerance) << last;
    EXPECT_GE(seconds, last);
    before = seconds;
  }
}

PlanRequest two_tensors() {
  PlanRequest request = request_of("allgather", 2, 1000000);
  request.piece_bytes = 4000000;  // each tensor has a bundle of its own
  request.tensors.push_back({"second", 1000000, 1, 0});
  return request;
}

TEST(OnDevices, TheBackwardPassStandsStillWhileTheyEncode) {
  CostInputs inputs = slow_inputs(2);
  inputs.ready_seconds = {1, 2};
  // Encoded from 1 to 9 without a pause; the links carry less. Then twice two payloads and finish.
  EXPECT_NEAR(cost_of(two_tensors(), inputs).seconds, 9 + 14, kTolerance);
  // The second one is ready at 6, since the device has encoded for 4 s.
  inputs.is_on_device = true;
  EXPECT_NEAR(cost_of(two_tensors(), inputs).seconds, 10 + 14, kTolerance);
  // Encoding takes nothing from a backward pass that is over.
  inputs.ready_seconds = {1, 1};
  EXPECT_NEAR(cost_of(two_tensors(), inputs).seconds, 9 + 14, kTolerance);
}

TEST(OnDevices, CpusWorkBesideThemAndCopiesBesideBoth) {
  CostInputs inputs = slow_inputs(2);
  inputs.is_on_device = true;
  CpuSpeeds cpus{{inputs.codecs[0]}, inputs.dense,        inputs.clear,
                 per_element(1e-6),  per_element(0.5e-6), 1};
  for (CostCurve* curve : {&cpus.codecs[0].encode, &cpus.codecs[0].decode_add}) {
    *curve = per_element(5e-6);
  }
  inputs.on_cpus = cpus;
  PlanRequest request = two_tensors();
  request.routes = {{.plan = "allgather", .piece_bytes = 4000000},
                    {.plan = "allgather", .piece_bytes = 4000000, .device = OptionDevice::Cpu}};
  request.route_of = {1, 0};
  // Copied for 1 s, encoded for 5, sent for 2.5, two payloads for 5 each, finished in 3, copied
  // back for 0.5. The device is done long before that.
  EXPECT_NEAR(cost_of(request, inputs).seconds, 1 + 5 + 2.5 + 10 + 3 + 0.5, kTolerance);
  // Fetched as soon as it is ready, though the device encodes until 6.
  inputs.ready_seconds = {2, 2};
  EXPECT_NEAR(cost_of(request, inputs).seconds, 2 + 22, kTolerance);
  // Ranks without a device have one lane that computes, and nothing to copy.
  inputs.is_on_device = false;
  inputs.on_cpus.reset();
  CostInputs plain = slow_inputs(2);
  plain.ready_seconds = inputs.ready_seconds;
  EXPECT_NEAR(cost_of(request, inputs).seconds, cost_of(two_tensors(), plain).seconds, kTolerance);
}

TEST(ReadyTimes, AreOfAllTensors) {
  CostInputs inputs = slow_inputs(2);
  inputs.ready_seconds = {1, 2};
  EXPECT_FALSE(estimate_cost(plan_of(request_of("ring", 2, 100)), inputs));
}

}  // namespace
}  // namespace cinch::rt
