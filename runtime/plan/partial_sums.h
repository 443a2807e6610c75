// Which plans a program takes whose `finish` is not linear (ProgramInfo::takes_partial_sums): those
// in which every rank's gradient is encoded by itself, and what these payloads decode to is added.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// A codec that does not take partial sums, by `takes_partial_sums`, of which some rank of the plan
/// encodes what a part of the ranks adds up to, or adds a gradient that was not encoded.
std::optional<std::uint32_t> find_refusing_codec(const Plan& plan,
                                                 const std::vector<bool>& takes_partial_sums);

}  // namespace cinch::rt
