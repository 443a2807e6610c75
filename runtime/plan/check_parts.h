// The parts of check_plan, in the order in which one relies on the other.
#pragma once
#include <string>

#include "runtime/core/error.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Pieces cover tensors, groups hold pieces, and every index of a task is one.
Status check_shape(const Plan& plan);
/// On one rank: the parts of each `sync` follow each other, with the exchanges that they ask for
/// between them.
Status check_protocols(const Plan& plan, std::uint32_t rank);
/// On one rank: what is read was written before, conflicting accesses are ordered, updates are
/// written once.
Status check_accesses(const Plan& plan, std::uint32_t rank);
/// Between ranks: exchanges match, and all tasks end.
Status check_meetings(const Plan& plan);

/// "rank 2, task 7 (encode …): what"
tl::unexpected<Error> task_fault(const Plan& plan, std::uint32_t rank, std::size_t task,
                                 const std::string& what);

}  // namespace cinch::rt
