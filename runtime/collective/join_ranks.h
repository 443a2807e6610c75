// Computes what a collective gives to one rank from the inputs of all ranks.
#pragma once
#include <cstdint>
#include <span>

#include "runtime/collective/rank_exchange.h"
#include "runtime/core/lang.h"
#include "runtime/image/image.h"

namespace cinch::rt {

template <typename T>
T join_values(RankReduction how, T a, T b) {
  switch (how) {
    case RankReduction::Min:
      return lang::min(a, b);
    case RankReduction::Max:
      return lang::max(a, b);
    default:
      return lang::add(a, b);
  }
}

/// Can elements of this type, in their stored form, be joined in this way? Floats of 16 bits are
/// joined in f32 and rounded once.
bool can_join(DType dtype, RankReduction reduction);

/// Joins arrays element by element, in rank order. All are as long as `output`, which may be one of
/// them. The mean is the sum divided by the number of arrays. Errors: Internal (can_join returns
/// false).
Status join_arrays(DType dtype, RankReduction reduction,
                   std::span<const std::span<const std::uint8_t>> inputs,
                   std::span<std::uint8_t> output);

/// For collectives that are not routed: writes `call.output` from `inputs`, which are by rank and
/// each as long as `call.input`. If the collective joins, elements are joined in rank order;
/// otherwise they are copied. Errors: Internal (sizes or types that no checked program has).
Status give_part(const CollectiveCall& call, std::span<const std::span<const std::uint8_t>> inputs,
                 std::uint32_t rank);

}  // namespace cinch::rt
