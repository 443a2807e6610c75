// Which plans suit a program whose `finish` is not linear (ProgramInfo::takes_partial_sums): plans
// that encode every rank's gradient by itself and add the decoded payloads.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Finds a codec that does not take partial sums (by `takes_partial_sums`), although some rank of
/// the plan encodes a partial sum with it, or adds a gradient that was not encoded.
std::optional<std::uint32_t> find_refusing_codec(const Plan& plan,
                                                 const std::vector<bool>& takes_partial_sums);

}  // namespace cinch::rt
