// Decides which elements are encoded together: pieces, groups, and bundles of groups.
#pragma once
#include <vector>

#include "runtime/planner/planner.h"

namespace cinch::rt {

/// Groups that are synchronised at once: one for each owner, which may be empty. For programs with
/// a `sync`: one for each tensor.
struct Bundle {
  std::vector<std::uint32_t> groups;
};

/// Sets the plan's pieces and groups. A tensor that may be cut and is larger than a bundle makes
/// several bundles. Smaller tensors of one codec and priority share a bundle, in which each small
/// one has one owner. The size of bundles of programs with a `sync` is measured in the bytes that
/// their collectives send. Bundles are in the order of their last tensors.
Result<std::vector<Bundle>> lay_out(const PlanRequest& request, std::uint32_t num_owners,
                                    Plan& plan);

/// Returns the collectives of a `sync` whose codec knows them; none if there are no elements.
Result<std::vector<SyncRound>> rounds_of(const CodecFacts& codec, const PlanTensor& tensor);

/// The shape that a codec is asked about: that of the whole tensor, or a vector.
struct PieceShape {
  std::int64_t rows = 0, cols = 1;
};
PieceShape shape_of(const PlanTensor& tensor, std::int64_t num_elems);

/// The largest size of the group's message in bytes.
std::uint64_t message_bytes(const Plan& plan, std::uint32_t group);
/// The size of the same elements as plain f32.
std::uint64_t dense_bytes(const Plan& plan, std::uint32_t group);

}  // namespace cinch::rt
