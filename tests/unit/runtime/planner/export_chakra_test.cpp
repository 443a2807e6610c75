// Traces of Chakra, read back by a reader of the tests' own.
#include <cmath>

#include "runtime/planner/export/export_plan.h"
#include "tests/unit/runtime/planner/export_readers.h"
#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

constexpr std::uint64_t kAllReduce = 0, kAllGather = 2, kBroadcast = 5;

std::vector<ChakraNodeRead> chakra_nodes(const Plan& plan, std::uint32_t rank,
                                         const CostInputs& inputs) {
  const auto file = chakra_of(plan, rank, inputs);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return {};
  EXPECT_LE(file->size(), chakra_bytes(plan, rank));
  return read_chakra(*file);
}

class ChakraTraces : public testing::TestWithParam<std::string_view> {};

INSTANTIATE_TEST_SUITE_P(Plans, ChakraTraces,
                         testing::ValuesIn(plan_names().begin(), plan_names().end()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ChakraTraces, HaveThePlansTasks) {
  for (std::uint32_t world = 1; world <= 5; ++world) {
    SCOPED_TRACE(world);
    const Plan plan = plan_of(known_request(GetParam(), world));
    const CostInputs inputs = export_inputs(world, 4);
    // By what both sides of a message have, or by the collective's number: bytes.
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::uint64_t> sent, received;
    std::vector<std::vector<std::uint64_t>> collectives(world);
    std::vector<double> moved;  // by collective: bytes of all ranks
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const auto simulated = simulated_tasks(plan, rank, inputs);
      const auto nodes = chakra_nodes(plan, rank, inputs);
      const auto& tasks = plan.ranks[rank].tasks;
      ASSERT_EQ(nodes.size(), tasks.size());
      std::optional<std::uint32_t> before;
      for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        const Task& task = tasks[t];
        const ChakraNodeRead& node = nodes[t];
        SCOPED_TRACE(describe_task(plan, task));
        EXPECT_EQ(node.id, t);
        std::vector<std::uint32_t> after = task.after;
        const bool is_exchange = task.kind == TaskKind::Exchange;
        EXPECT_EQ(node.attribute("is_cpu_op"), is_exchange ? 0U : 1U);
        EXPECT_EQ(node.attributes.at("is_cpu_op").first, 27U);
        if (!is_exchange) {
          EXPECT_EQ(node.type, 4U);
          EXPECT_EQ(node.micros, std::llround((*simulated)[t].seconds * 1e6));
        } else if (is_message(task.exchange)) {
          const bool sends = task.exchange == ExchangeKind::Send;
          EXPECT_EQ(node.type, sends ? 5U : 6U);
          EXPECT_EQ(node.attribute(sends ? "comm_src" : "comm_dst"), rank);
          EXPECT_EQ(node.attribute(sends ? "comm_dst" : "comm_src"), task.peer);
          EXPECT_EQ(node.attributes.at("comm_tag").first, 7U);
          EXPECT_EQ(node.attributes.at("comm_size").first, 9U);
          const std::tuple message{node.attribute("comm_src"), node.attribute("comm_dst"),
                                   node.attribute("comm_tag")};
          const std::uint64_t bytes = node.attribute("comm_size");
          EXPECT_TRUE((sends ? sent : received).emplace(message, bytes).second);
          if (sends) EXPECT_NEAR(bytes, (*simulated)[t].sent_bytes(), 1);
        } else {
          EXPECT_EQ(node.type, 7U);
          collectives[rank].push_back(node.attribute("comm_type"));
          collectives[rank].push_back(node.attribute("comm_size"));
          const std::size_t number = collectives[rank].size() / 2 - 1;
          moved.resize(std::max(moved.size(), number + 1));
          moved[number] += (*simulated)[t].sent_bytes();
          if (task.reads.size() == world) {
            moved[number] += slot_bytes(plan, rank, task, task.reads[rank], inputs);
          }
          if (before && std::ranges::find(after, *before) == after.end()) after.push_back(*before);
          before = t;
        }
        std::ranges::sort(after);
        EXPECT_EQ(node.after, after);
      }
      EXPECT_EQ(collectives[rank], collectives[0]);
    }
    EXPECT_EQ(sent, received);
    for (std::size_t i = 0; i < moved.size() && world > 1; ++i) {
      const std::uint64_t type = collectives[0][2 * i], size = collectives[0][2 * i + 1];
      const std::uint64_t copies = type == kAllReduce   ? 2 * (world - 1)
                                   : type == kAllGather ? world * (world - 1)
                                   : type == kBroadcast ? world - 1
                                                        : world;  // own parts, too
      EXPECT_NEAR(moved[i], size * copies, copies) << type;
    }
  }
}

TEST(Chakra, BackwardPassComesFirst) {
  const Plan plan = plan_of(known_request("two_shot", 3));
  CostInputs inputs = export_inputs(3, 4);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    inputs.ready_seconds.push_back(static_cast<double>(i + 1) * 1.3e-6);
  }
  const auto simulated = simulated_tasks(plan, 1, inputs);
  ASSERT_TRUE(simulated);
  std::set<double> times;
  for (const SimulatedTask& task : *simulated) {
    if (task.ready_seconds > 0) times.insert(task.ready_seconds);
  }
  const auto nodes = chakra_nodes(plan, 1, inputs);
  EXPECT_EQ(nodes.size(), times.size() + simulated->size());
  std::uint64_t micros = 0;
  for (std::size_t n = 0; n < times.size(); ++n) {
    EXPECT_EQ(nodes[n].name, "backward");
    EXPECT_EQ(nodes[n].after.size(), n == 0 ? 0U : 1U);
    EXPECT_EQ(nodes[n].attribute("is_cpu_op"), 0U);
    micros += nodes[n].micros;
    EXPECT_EQ(micros, std::llround(*std::next(times.begin(), n) * 1e6));
  }
}

TEST(Chakra, CpusBesideADeviceWorkByThemselves) {
  PlanRequest request = known_request("allgather", 2);
  request.routes = {{.plan = "allgather", .device = OptionDevice::Cpu}};
  request.route_of.assign(request.tensors.size(), 0);
  const Plan plan = plan_of(request);
  CostInputs inputs = export_inputs(2, 4);
  inputs.is_on_device = true;
  std::set<std::uint64_t> found;
  const auto nodes = chakra_nodes(plan, 0, inputs);
  ASSERT_EQ(nodes.size(), plan.ranks[0].tasks.size());
  for (std::size_t t = 0; t < nodes.size(); ++t) {
    const Lane lane = plan.ranks[0].tasks[t].lane();
    const bool is_cpu = lane != Lane::Compute && lane != Lane::Network;
    EXPECT_EQ(nodes[t].attribute("is_cpu_op"), is_cpu ? 1U : 0U);
    found.insert(nodes[t].attribute("is_cpu_op"));
  }
  EXPECT_EQ(found.size(), 2U);
}

}  // namespace
}  // namespace cinch::rt
