// Plans as text: JSON that can be read back, and lines for people.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/error.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Bytes in names that are not UTF-8 are replaced; such a tensor is not found again.
std::string plan_to_json(const Plan& plan);
/// Parses a plan without checking it. Errors: CorruptFile (not the JSON of a plan).
Result<Plan> plan_from_json(std::string_view text);
/// A line per task of one rank.
std::string print_plan(const Plan& plan, std::uint32_t rank);

/// A digest of what all ranks have of a plan: everything but the tasks of ranks other than rank 0.
/// The same on every machine. Ranks that write the same tasks for rank 0 have the same planner and
/// the same request, so their own tasks fit together.
std::uint64_t plan_digest(const Plan& plan);

}  // namespace cinch::rt
