// Tells whether ranks hold the same plan, by a digest.
#pragma once
#include <cstdint>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// A digest of everything in the plan, including the tasks of all ranks; the same on every machine.
std::uint64_t plan_digest(const Plan& plan);

}  // namespace cinch::rt
