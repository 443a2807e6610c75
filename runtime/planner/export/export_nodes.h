// The tasks of one rank as nodes that both formats can write: work with a time, messages,
// collectives, and what each node waits for.
//
// Alone: between the files that make nodes and those that write them.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/planner/plan_cost.h"

namespace cinch::rt {

struct ExportNode {
  enum class Kind : std::uint8_t { Calc, Send, Receive, Collective };
  Kind kind = Kind::Calc;
  /// Nodes of one lane follow one another. Without a GPU all work is on Lane::Compute, and the
  /// backward pass, which takes no time from it, on Lane::Cpus.
  Lane lane = Lane::Compute;
  std::uint32_t task = 0;                 // of the plan
  bool is_backward = false;               // until a gradient is ready; of no task
  std::uint64_t duration = 0;             // in the format's units
  std::uint64_t bytes = 0;                // of a message or a collective
  std::uint32_t peer = 0;                 // of a message
  std::uint32_t tag = 0;                  // of a message: none between the same ranks has the same
  std::vector<std::uint32_t> after = {};  // earlier nodes
};

struct ExportFormat {
  double units_per_second = 1;
  bool has_collectives = false;  // else they become messages
};

/// Errors: as of goal_of, without OutOfRange.
Result<std::vector<ExportNode>> export_nodes(const Plan& plan, std::uint32_t rank,
                                             const CostInputs& inputs, const ExportFormat& format);

/// At least as many as export_nodes makes of the rank's tasks.
struct NodeCounts {
  std::uint64_t nodes = 0;
  std::uint64_t waits = 0;  // entries of all `after`
};
NodeCounts most_nodes(const Plan& plan, std::uint32_t rank, const ExportFormat& format);

/// Errors: OutOfRange (the file may have more than `most` bytes).
Status check_room(const char* file, std::uint64_t bytes, std::uint64_t most);

}  // namespace cinch::rt
