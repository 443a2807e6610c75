// Nodes as GOAL:
//
//   num_ranks 2
//   rank 0 {
//   l0: calc 20000 cpu 0
//   l1: send 1024b to 1 tag 0 cpu 1
//   l1 requires l0
//   }
//
// Alone: one of two formats.
#include <fmt/format.h>

#include <iterator>

#include "runtime/planner/export/export_nodes.h"
#include "runtime/planner/export/export_plan.h"

namespace cinch::rt {
namespace {

constexpr ExportFormat kGoal{.units_per_second = 1e9, .has_collectives = false};

// The longest line of a node, and of what it waits for, without their labels' digits.
constexpr std::uint64_t kGoalNode =
    std::string_view("l: send 9007199254740991b to 4294967295 tag 4294967295 cpu 4\n").size();
constexpr std::uint64_t kGoalWait = std::string_view("l requires l\n").size();
constexpr std::uint64_t kGoalRank = std::string_view("rank 4294967295 {\n}\n").size();
constexpr std::uint64_t kGoalHead = std::string_view("num_ranks 4294967295\n").size();

void append_goal(std::string& text, std::size_t label, const ExportNode& node, unsigned cpu) {
  const auto to = std::back_inserter(text);
  switch (node.kind) {
    case ExportNode::Kind::Send:
      fmt::format_to(to, "l{}: send {}b to {} tag {} cpu {}\n", label, node.bytes, node.peer,
                     node.tag, cpu);
      break;
    case ExportNode::Kind::Receive:
      fmt::format_to(to, "l{}: recv {}b from {} tag {} cpu {}\n", label, node.bytes, node.peer,
                     node.tag, cpu);
      break;
    default:
      fmt::format_to(to, "l{}: calc {} cpu {}\n", label, node.duration, cpu);
  }
  for (const std::uint32_t earlier : node.after) {
    fmt::format_to(to, "l{} requires l{}\n", label, earlier);
  }
}

}  // namespace

std::uint64_t goal_bytes(const Plan& plan) {
  std::uint64_t bytes = kGoalHead;
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    const NodeCounts most = most_nodes(plan, rank, kGoal);
    const std::uint64_t digits = fmt::formatted_size("{}", most.nodes);
    bytes += kGoalRank + most.nodes * (kGoalNode + digits) + most.waits * (kGoalWait + 2 * digits);
  }
  return bytes;
}

Result<std::string> goal_of(const Plan& plan, const CostInputs& inputs, GoalStreams streams,
                            std::uint64_t most_bytes) {
  CINCH_TRY(check_room("GOAL file", goal_bytes(plan), most_bytes));
  std::string text = fmt::format("num_ranks {}\n", plan.world());
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    const std::vector<ExportNode> nodes = TRY(export_nodes(plan, rank, inputs, kGoal));
    text += fmt::format("rank {} {{\n", rank);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto lane = static_cast<unsigned>(nodes[i].lane);
      append_goal(text, i, nodes[i], streams == GoalStreams::Lanes ? lane : 0);
    }
    text += "}\n";
  }
  return text;
}

}  // namespace cinch::rt
