// Computes what a collective gives to one rank from the inputs of all ranks.
#pragma once

#include "runtime/collective/rank_exchange.h"
#include "runtime/collective/transport.h"
#include "runtime/core/lang.h"

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

// Collectives in which a rank does not know by itself which arrays it gets, or how long they are.
// Ranks exchange offers before arrays move.

/// What a rank tells the others before arrays move.
struct RankOffer {
  std::uint64_t to = 0;          // the rank that gets its array, if the collective names one
  std::uint64_t sent_bytes = 0;  // length of its array
  std::uint64_t room_bytes = 0;  // how much it can receive
};
RankOffer offer_of(const CollectiveCall& call);

/// For each sending rank, the part of the output of `rank` that the sender's array fills; empty if
/// it sends nothing to `rank`. All ranks find the same error, so none waits for another:
/// CheckFailed (a rank that does not exist, two ranks that send to the same one, several roots),
/// Internal (an array that does not fit its receiver).
Result<std::vector<ByteRange>> received_parts(const CollectiveCall& call,
                                              std::span<const RankOffer> offers,
                                              std::uint32_t rank);

/// Call this after the arrays of `parts` have arrived. Fills the rest of the output with zeros and
/// writes the number of elements.
void end_routed(const CollectiveCall& call, std::span<const ByteRange> parts);

/// Writes the output of `rank` from the inputs of all ranks. Errors: those of received_parts.
Status give_routed(const CollectiveCall& call,
                   std::span<const std::span<const std::uint8_t>> inputs,
                   std::span<const RankOffer> offers, std::uint32_t rank);

/// Reads the u32 of a buffer.
using ReadScalar = std::function<Result<std::uint32_t>(BufferIndex)>;

/// Reads receiver and length of a routed call from the buffers `scalars` of its step. On entry
/// `call.input` is the whole buffer; on return it is the counted elements. Errors: those of `read`,
/// Internal (more elements than the buffer has).
Status take_scalars(std::span<const BufferIndex> scalars, std::uint32_t storage_bits,
                    const ReadScalar& read, CollectiveCall& call);

}  // namespace cinch::rt
