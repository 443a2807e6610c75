// What a collective gives to one rank, from what all ranks put in.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/collective/rank_exchange.h"

namespace cinch::rt {

/// Are elements of this type, as they are stored, joined in this way? Floats of 16 bits are joined
/// in f32 and rounded once.
bool can_join(DType dtype, RankReduction reduction);

/// Arrays joined element by element, in rank order; all are as long as `output`, which may be one
/// of them. The mean is the sum divided by the number of arrays. Errors: Internal (can_join says
/// no).
Status join_arrays(DType dtype, RankReduction reduction,
                   std::span<const std::span<const std::uint8_t>> inputs,
                   std::span<std::uint8_t> output);

/// Of collectives that are not routed: writes `call.output` from `inputs`, by rank and as long as
/// `call.input` each: joined element by element in rank order where the collective joins, else
/// copied. Errors: Internal (sizes or types that no checked program has).
Status give_part(const CollectiveCall& call, std::span<const std::span<const std::uint8_t>> inputs,
                 std::uint32_t rank);

}  // namespace cinch::rt
