// Plans as text: JSON that is read back, and lines for people.
#pragma once
#include <string>
#include <string_view>

#include "runtime/core/error.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

/// What is no UTF-8 in a name is replaced: such a tensor is not found again.
std::string plan_to_json(const Plan& plan);
/// Errors: CorruptFile (not such JSON). The plan is not checked.
Result<Plan> plan_from_json(std::string_view text);
/// A line per task of one rank.
std::string print_plan(const Plan& plan, std::uint32_t rank);

}  // namespace cinch::rt
