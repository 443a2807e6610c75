// Plans as files of simulators, read back by readers of the tests' own.
#include "runtime/planner/export/export_plan.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/unit/runtime/planner/export_readers.h"
#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

using testing::HasSubstr;

GoalRanks goal_ranks(const Plan& plan, const CostInputs& inputs,
                     GoalStreams streams = GoalStreams::Lanes) {
  const auto text = goal_of(plan, inputs, streams);
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  if (!text) return {};
  EXPECT_LE(text->size(), goal_bytes(plan));
  EXPECT_GE(4 * text->size(), goal_bytes(plan));
  const auto ranks = GoalReader(*text).run();
  EXPECT_TRUE(ranks);
  return ranks.value_or(GoalRanks());
}

// An all-reduce over a ring in 2 (P - 1) steps: what a rank sends waits for what it received
// before. With each of the first P - 1 messages goes an Encode, with each that comes a DecodeAdd.
Plan ring_plan(std::uint32_t world, std::uint64_t bytes) {
  const std::uint64_t part = bytes / world;
  Plan plan;
  plan.tensors = {{"gradient", static_cast<std::int64_t>(bytes), 1, 0}};
  plan.pieces = {{0, 0, 0, 1, part, 0}};
  plan.groups = {{0, {0}}};
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    RankPlan& own = plan.ranks.emplace_back();
    own.slots = {{0, part}, {part, part}};
    const auto add = [&](Task task, bool is_first = false) {
      const auto before = static_cast<std::uint32_t>(own.tasks.size());
      if (!is_first) task.after = {before - 1};
      task.groups = {0};
      own.tasks.push_back(std::move(task));
    };
    for (std::uint32_t step = 0; step < 2 * (world - 1); ++step) {
      if (step < world - 1) add({.kind = TaskKind::Encode}, step == 0);
      add({.kind = TaskKind::Exchange,
           .reads = {0},
           .exchange = ExchangeKind::Send,
           .peer = (rank + 1) % world});
      add({.kind = TaskKind::Exchange,
           .writes = {1},
           .exchange = ExchangeKind::Receive,
           .peer = (rank + world - 1) % world});
      add({.kind = TaskKind::DecodeAdd});
    }
  }
  return plan;
}

CostInputs ring_inputs(std::uint32_t world, double encode, double decode_add) {
  CostInputs inputs = export_inputs(world, 1);
  inputs.codecs[0].encode = nanoseconds_each(encode);
  inputs.codecs[0].decode_add = nanoseconds_each(decode_add);
  return inputs;
}

// Figures of LogGOPSim. Nothing overlaps on this ring, so streams make no difference.
TEST(Goal, RingsTakeWhatLogGopsSays) {
  for (const GoalStreams streams : {GoalStreams::Lanes, GoalStreams::One}) {
    const auto of = [&](std::uint32_t world, std::uint64_t bytes, double encode, double decode) {
      return LogGops().nanoseconds_of(
          goal_ranks(ring_plan(world, bytes), ring_inputs(world, encode, decode), streams));
    };
    EXPECT_EQ(of(2, 2, 0, 0), 2U * (2 * 1500 + 2500));
    EXPECT_EQ(of(4, 4096, 0, 0), 69'828U);
    EXPECT_EQ(of(8, 1 << 20, 0, 0), 11'086'964U);
    EXPECT_EQ(of(8, 1 << 20, 20'000, 5'000), 11'296'964U);
  }
}

CostInputs free_inputs(std::uint32_t world) {
  CostInputs inputs = export_inputs(world, 4);
  inputs.codecs.assign(4, {});
  inputs.dense = {};
  inputs.clear = {};
  return inputs;
}

TEST(Goal, PlansTakeWhatLogGopsSays) {
  const auto of = [](const std::string& plan, std::uint32_t world, std::int64_t bytes) {
    const PlanRequest request = exact_request(plan, world, bytes);
    return LogGops().nanoseconds_of(goal_ranks(plan_of(request), free_inputs(world)));
  };
  EXPECT_EQ(of("ring", 8, 1 << 20), 11'086'964U);
  // Messages of b bytes to all others leave one after the other, g + (b - 1) G apart.
  const auto to_all = [](std::uint64_t world, std::uint64_t bytes) {
    return (world - 2) * (1000 + (bytes - 1) * 6) + 5500 + (bytes - 1) * 6;
  };
  EXPECT_EQ(of("allgather", 4, 4096), to_all(4, 4096));
  EXPECT_EQ(of("two_shot", 8, 1 << 20), 2 * to_all(8, 1 << 17));
}

class Exports : public testing::TestWithParam<std::string_view> {};

INSTANTIATE_TEST_SUITE_P(Plans, Exports,
                         testing::ValuesIn(plan_names().begin(), plan_names().end()),
                         [](const auto& info) { return std::string(info.param); });

// Compares the nodes of a rank with the tasks of the plan, in their order.
void expect_tasks(const Plan& plan, std::uint32_t rank, const std::vector<GoalNode>& nodes,
                  const std::vector<TaskSpan>& spans, const CostInputs& inputs) {
  const auto simulated = simulated_tasks(plan, rank, inputs);
  ASSERT_TRUE(simulated);
  std::vector<std::uint32_t> ends;
  std::uint32_t next = 0;
  for (std::size_t t = 0; t < simulated->size(); ++t) {
    const Task& task = plan.ranks[rank].tasks[t];
    SCOPED_TRACE(describe_task(plan, task));
    std::vector<std::uint32_t> after;
    for (const std::uint32_t earlier : task.after) after.push_back(ends[earlier]);
    std::ranges::sort(after);
    ASSERT_LT(next, nodes.size());
    EXPECT_EQ(nodes[next].after, after);
    std::uint32_t end = next++;
    if (task.kind != TaskKind::Exchange) {
      EXPECT_EQ(nodes[end].op, "calc");
      EXPECT_EQ(nodes[end].cpu, 0U);
      EXPECT_EQ(nodes[end].size, std::llround((*simulated)[t].seconds * 1e9));
      ends.push_back(end);
      continue;
    }
    double sent = 0, num_messages = 0;
    const auto count = [&](std::uint32_t node) {
      EXPECT_EQ(nodes[node].cpu, 1U);
      EXPECT_NE(nodes[node].peer, rank);
      EXPECT_GT(nodes[node].size, 0U);
      if (nodes[node].op == "send") sent += static_cast<double>(nodes[node].size);
      ++num_messages;
    };
    if (is_message(task.exchange)) {
      EXPECT_EQ(nodes[end].op, task.exchange == ExchangeKind::Send ? "send" : "recv");
      EXPECT_EQ(nodes[end].peer, task.peer);
      count(end);
    } else {
      const int num_phases = task.exchange == ExchangeKind::AllReduce ? 2 : 1;
      EXPECT_EQ(nodes[end].op, "calc");
      for (int phase = 0; phase < num_phases; ++phase) {
        std::vector<std::uint32_t> messages;
        for (; next < nodes.size() && nodes[next].op != "calc"; ++next) {
          if (nodes[next].after != std::vector{end}) break;
          messages.push_back(next);
          count(next);
        }
        if (messages.empty()) continue;
        end = next++;
        ASSERT_LT(end, nodes.size());
        EXPECT_EQ(nodes[end].op, "calc");
        EXPECT_EQ(nodes[end].size, 0U);
        EXPECT_EQ(nodes[end].after, messages);
      }
    }
    ends.push_back(end);
    EXPECT_NEAR(sent, spans[t].sent_bytes, num_messages);
  }
  EXPECT_EQ(next, nodes.size());
}

TEST_P(Exports, GoalHasThePlansTasks) {
  for (std::uint32_t world = 1; world <= 5; ++world) {
    SCOPED_TRACE(world);
    const Plan plan = plan_of(known_request(GetParam(), world));
    const CostInputs inputs = export_inputs(world, 4);
    PlanSpans spans;
    ASSERT_TRUE(estimate_cost(plan, inputs, &spans));
    const GoalRanks ranks = goal_ranks(plan, inputs);
    ASSERT_EQ(ranks.size(), world);
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> sent, received;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      expect_tasks(plan, rank, ranks[rank], spans[rank], inputs);
      for (const GoalNode& node : ranks[rank]) {
        if (node.op == "calc") continue;
        const bool sends = node.op == "send";
        const auto from = sends ? rank : node.peer, to = sends ? node.peer : rank;
        EXPECT_TRUE(
            (sends ? sent : received).emplace(std::tuple(from, to, node.tag), node.size).second);
      }
    }
    EXPECT_EQ(sent, received);
    EXPECT_EQ(sent.empty(), world == 1);
    EXPECT_TRUE(LogGops().nanoseconds_of(ranks)) << "nodes wait for each other";
  }
}

TEST(Goal, GradientsAreReadyAfterWorkOfTheBackwardPass) {
  PlanRequest request = known_request("two_shot", 3);
  request.piece_bytes = 1 << 16;
  const Plan plan = plan_of(request);
  CostInputs inputs = export_inputs(3, 4);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    inputs.ready_seconds.push_back(static_cast<double>(plan.tensors.size() - i) * 1e-3 + 0.4e-9);
  }
  for (const bool is_on_device : {false, true}) {
    inputs.is_on_device = is_on_device;
    const GoalRanks ranks = goal_ranks(plan, inputs);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const auto simulated = simulated_tasks(plan, rank, inputs);
      ASSERT_TRUE(simulated);
      std::multiset<std::uint64_t> expected, found;
      for (const SimulatedTask& task : *simulated) {
        if (task.ready_seconds > 0) expected.insert(std::llround(task.ready_seconds * 1e9));
      }
      const std::set<std::uint64_t> times(expected.begin(), expected.end());
      EXPECT_GE(times.size(), 5U);
      // The backward pass comes first, each part behind the one before.
      const auto& nodes = ranks[rank];
      std::vector<std::uint64_t> ready;
      for (const std::uint64_t time : times) {
        const GoalNode& node = nodes[ready.size()];
        EXPECT_EQ(node.op, "calc");
        EXPECT_EQ(node.cpu, is_on_device ? 0U : 2U);
        EXPECT_EQ(node.after.size(), ready.empty() ? 0U : 1U);
        ready.push_back((ready.empty() ? 0 : ready.back()) + node.size);
        EXPECT_EQ(ready.back(), time);
      }
      // What takes a gradient waits for the part that makes it.
      for (std::size_t n = ready.size(); n < nodes.size(); ++n) {
        for (const std::uint32_t earlier : nodes[n].after) {
          if (earlier < ready.size()) found.insert(ready[earlier]);
        }
      }
      EXPECT_EQ(found, expected);
    }
    EXPECT_TRUE(LogGops().nanoseconds_of(ranks));
  }
}

TEST(Goal, LanesOfADeviceAreStreams) {
  PlanRequest request = known_request("allgather", 2);
  request.routes = {{.plan = "allgather", .device = OptionDevice::Cpu}};
  request.route_of.assign(request.tensors.size(), 0);
  const Plan plan = plan_of(request);
  CostInputs inputs = export_inputs(2, 4);
  const auto streams = [&] {
    std::set<std::uint32_t> found;
    for (const GoalRanks ranks = goal_ranks(plan, inputs); const GoalNode& node : ranks.at(0))
      found.insert(node.cpu);
    return found;
  };
  EXPECT_EQ(streams(), (std::set<std::uint32_t>{0, 1}));
  inputs.is_on_device = true;
  EXPECT_EQ(streams(), (std::set<std::uint32_t>{0, 1, 2, 3, 4}));
  for (const GoalRanks ranks = goal_ranks(plan, inputs, GoalStreams::One);
       const GoalNode& node : ranks.at(0)) {
    EXPECT_EQ(node.cpu, 0U);
  }
}

TEST(Goal, PayloadsCountWithWhatTheyUse) {
  PlanRequest request = exact_request("ring", 2, 1 << 20);
  request.codecs[0].has_fixed_size = false;
  request.lengths = LengthPolicy::Exchanged;
  CostInputs inputs = free_inputs(2);
  inputs.codecs[0].used_share = 0.25;
  std::multiset<std::uint64_t> sizes;
  for (const GoalRanks ranks = goal_ranks(plan_of(request), inputs);
       const GoalNode& node : ranks.at(0)) {
    if (node.op == "send") sizes.insert(node.size);
  }
  EXPECT_EQ(sizes, (std::multiset<std::uint64_t>{8, 8, 1 << 17, 1 << 17}));
}

template <typename T>
std::string export_error(const Result<T>& result, ErrorKind kind = ErrorKind::InvalidArgument) {
  if (result) return "no error";
  EXPECT_EQ(result.error().kind, kind);
  return result.error().message;
}

TEST(ExportFiles, TellHowLargeAFileIsBeforeTheyBuildIt) {
  const Plan plan = plan_of(known_request("two_shot", 4));
  const CostInputs inputs = export_inputs(4, 4);
  const std::string bytes = std::to_string(goal_bytes(plan)) + " bytes";
  EXPECT_THAT(export_error(goal_of(plan, inputs, GoalStreams::Lanes, 1000), ErrorKind::OutOfRange),
              HasSubstr(bytes));
  EXPECT_THAT(export_error(chakra_of(plan, 2, inputs, 1000), ErrorKind::OutOfRange),
              HasSubstr("1000 are allowed"));
  EXPECT_TRUE(goal_of(plan, inputs, GoalStreams::One, goal_bytes(plan)));
  EXPECT_TRUE(chakra_of(plan, 2, inputs, chakra_bytes(plan, 2)));
}

TEST(ExportFiles, RefuseWhatAFileCannotSay) {
  const Plan plan = plan_of(known_request("ring", 3));
  CostInputs inputs = export_inputs(3, 4);
  EXPECT_THAT(export_error(chakra_of(plan, 3, inputs)), HasSubstr("rank 3 of 3"));
  EXPECT_THAT(export_error(goal_of(plan, export_inputs(2, 4))), HasSubstr("a plan for 3 ranks"));
  inputs.ready_seconds = {1, 2};
  EXPECT_THAT(export_error(goal_of(plan, inputs)), HasSubstr("2 ready times"));
  for (const double never : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    inputs = export_inputs(3, 4);
    inputs.codecs[0].encode = {{{1, never}}};
    EXPECT_THAT(export_error(goal_of(plan, inputs)), HasSubstr("no file can hold")) << never;
  }
  inputs = export_inputs(3, 4);
  EXPECT_THAT(export_error(goal_of(plan_of(mixed_request("ring", 3)), inputs)),
              HasSubstr("`sync`"));
  PlanRequest of_one = known_request("ring", 3);
  of_one.rank = 1;
  EXPECT_THAT(export_error(goal_of(plan_of(of_one), inputs)), HasSubstr("tasks of rank 2"));
  EXPECT_TRUE(chakra_of(plan_of(of_one), 1, inputs));
}

}  // namespace
}  // namespace cinch::rt
