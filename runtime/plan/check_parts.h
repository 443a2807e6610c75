// The parts of check_plan. Each relies on the ones before it.
#pragma once
#include <string>

#include "runtime/core/error.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Checks that pieces cover tensors, groups hold pieces, and every index of a task is valid.
Status check_shape(const Plan& plan);
/// Checks on one rank that the parts of each `sync` follow each other, with their exchanges between
/// them.
Status check_protocols(const Plan& plan, std::uint32_t rank);
/// Checks on one rank that reads come after writes, conflicting accesses are ordered, and updates
/// are written once.
Status check_accesses(const Plan& plan, std::uint32_t rank);
/// Checks between ranks that exchanges match and all tasks end.
Status check_meetings(const Plan& plan);

/// "rank 2, task 7 (encode …): what"
tl::unexpected<Error> task_fault(const Plan& plan, std::uint32_t rank, std::size_t task,
                                 const std::string& what);

}  // namespace cinch::rt
