// What a collective gives to one rank, from what all ranks put in.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/collective/rank_exchange.h"

namespace cinch::rt {

/// Writes `call.output` from `inputs`, by rank and as long as `call.input` each: joined element by
/// element in rank order where the collective joins, else copied. Errors: Internal (sizes or types
/// that no checked program has).
Status give_part(const CollectiveCall& call, std::span<const std::span<const std::uint8_t>> inputs,
                 std::uint32_t rank);

}  // namespace cinch::rt
