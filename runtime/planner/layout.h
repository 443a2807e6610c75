// Which elements are encoded together: pieces, groups, and bundles of groups.
#pragma once
#include <vector>

#include "runtime/planner/planner.h"

namespace cinch::rt {

/// Groups that are synchronised at once: one for each owner. A group may be empty.
struct Bundle {
  std::vector<std::uint32_t> groups;
};

/// Sets the plan's pieces and groups. A tensor that may be cut and is larger than a bundle makes
/// several, small ones of one codec and priority share one and have one owner each. Bundles are in
/// the order of the tensors they begin with.
Result<std::vector<Bundle>> lay_out(const PlanRequest& request, std::uint32_t num_owners,
                                    Plan& plan);

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
