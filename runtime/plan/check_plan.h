// Checks a plan before any of it runs.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Checks the plans of all ranks together:
/// - pieces cover each tensor once, groups hold each piece once, indices are valid;
/// - slots lie in the wire; what a task reads was written by an earlier task that it depends on; if
/// two tasks touch the same bytes or values and one of them writes, they are ordered;
/// - every update is written once;
/// - exchanges match: collectives come in one order on all ranks, messages in one order between two
/// ranks, both with the sizes that the other side expects;
/// - there is an order in which all tasks of all ranks end.
/// Errors: InvalidArgument, which names rank and task.
Status check_plan(const Plan& plan);

// Which plans suit a program whose `finish` is not linear (ProgramInfo::takes_partial_sums): plans
// that encode every rank's gradient by itself and add the decoded payloads.

/// Finds a codec that does not take partial sums (by `takes_partial_sums`), although some rank of
/// the plan encodes a partial sum with it, or adds a gradient that was not encoded.
std::optional<std::uint32_t> find_refusing_codec(const Plan& plan,
                                                 const std::vector<bool>& takes_partial_sums);

}  // namespace cinch::rt
