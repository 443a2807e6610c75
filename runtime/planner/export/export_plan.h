// Plans as files that simulators of networks read. Both formats have the tasks of a plan with their
// times, their messages with bytes and tags, and what each waits for; docs/sync_reference.md says
// what becomes what. The plan has passed check_plan, and has the tasks of all ranks.
//
// Alone: what programs call; the files of this folder serve it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/plan_cost.h"

namespace cinch::rt {

/// A file is built in memory, so by default none may be larger.
inline constexpr std::uint64_t kMostExportBytes = std::uint64_t{4} << 30;

/// On how many processors of a rank (`cpu` in GOAL) a plan runs.
enum class GoalStreams : std::uint8_t {
  Lanes,  // one for each lane: work and exchanges overlap
  One     // for simulators in which work of one processor does not delay another, as LogGOPSim
};

/// The plan as GOAL (Hoefler, Siebert and Lumsdaine, ICPP 2009), in the text form of LogGOPSim.
/// GOAL has only messages, so collectives are messages between all pairs of ranks. Errors:
/// OutOfRange (the file may be larger than `most_bytes`; nothing has been built yet),
/// InvalidArgument (those of simulated_tasks; a plan without the tasks of some rank; a time that is
/// negative or too long for the file).
Result<std::string> goal_of(const Plan& plan, const CostInputs& inputs,
                            GoalStreams streams = GoalStreams::Lanes,
                            std::uint64_t most_bytes = kMostExportBytes);
/// At least as many bytes as the file has, counted without building it.
std::uint64_t goal_bytes(const Plan& plan);

/// One rank's file of a Chakra trace, "NAME.<rank>.et": MLCommons' schema 0.0.4
/// (schema/protobuf/et_def.proto), each message behind its length as a varint. Errors: as of
/// goal_of, for this rank; InvalidArgument (no such rank).
Result<std::vector<std::uint8_t>> chakra_of(const Plan& plan, std::uint32_t rank,
                                            const CostInputs& inputs,
                                            std::uint64_t most_bytes = kMostExportBytes);
std::uint64_t chakra_bytes(const Plan& plan, std::uint32_t rank);

}  // namespace cinch::rt
