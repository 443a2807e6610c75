// Which elements are encoded together: pieces, groups, and bundles of groups.
#pragma once
#include <vector>

#include "runtime/planner/planner.h"

namespace cinch::rt {

/// Groups that are synchronised at once: one for each owner, which may be empty; of programs with a
/// `sync`, one for each tensor.
struct Bundle {
  std::vector<std::uint32_t> groups;
};

/// Sets the plan's pieces and groups. A tensor that may be cut and is larger than a bundle makes
/// several; smaller ones of one codec and priority share one, where small ones have one owner each.
/// Bundles of programs with a `sync` are as large by what their collectives send. Bundles are in
/// the order of their last tensors.
Result<std::vector<Bundle>> lay_out(const PlanRequest& request, std::uint32_t num_owners,
                                    Plan& plan);

/// The collectives of a `sync` whose codec tells them; none for no elements.
Result<std::vector<SyncRound>> rounds_of(const CodecFacts& codec, const PlanTensor& tensor);

/// What a codec is asked about a piece: it is the whole tensor, or a vector.
struct PieceShape {
  std::int64_t rows = 0, cols = 1;
};
PieceShape shape_of(const PlanTensor& tensor, std::int64_t num_elems);

/// Most bytes of the group's message.
std::uint64_t message_bytes(const Plan& plan, std::uint32_t group);
/// Of the same elements as plain f32.
std::uint64_t dense_bytes(const Plan& plan, std::uint32_t group);

}  // namespace cinch::rt
