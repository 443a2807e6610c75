// Whether ranks hold the same plan, in a word.
#pragma once
#include <cstdint>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Of everything in the plan, the views of all ranks too; the same on every machine.
std::uint64_t plan_digest(const Plan& plan);

}  // namespace cinch::rt
