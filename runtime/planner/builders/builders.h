// The plans of planner.h, one function each. Each function writes the tasks of one rank for one
// bundle.
#pragma once
#include <vector>

#include "runtime/planner/builders/rank_builder.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

// Decides which elements are encoded together: pieces, groups, and bundles of groups.

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

struct BundleContext {
  const Plan& plan;
  const Bundle& bundle;
  RankBuilder& to;
  std::uint32_t rank = 0, world = 1;
  std::vector<std::uint32_t> servers;   // for ps: by owner
  bool is_sized = false;                // messages have lengths
  std::uint32_t ranks_per_machine = 1;  // for hierarchical, as the fields below
  ExchangeOption option;
  std::vector<SumArray> sum_arrays;  // for allreduce: the group's arrays; none: plain f32

  std::uint32_t add_slot(std::uint32_t group) const {
    const std::uint64_t bytes = message_bytes(plan, group);
    return is_sized ? to.add_sized_slot(bytes) : to.add_slot(bytes);
  }
};

void build_allreduce(const BundleContext& context);
void build_summed(const BundleContext& context);
void build_allgather(const BundleContext& context);
void build_two_shot(const BundleContext& context);
void build_reduce_scatter(const BundleContext& context);
void build_ring(const BundleContext& context);
void build_ps(const BundleContext& context);
void build_tree(const BundleContext& context);
void build_hierarchical(const BundleContext& context);
/// The `sync` of a group's one piece, and its collectives.
struct Protocol {
  std::uint32_t group = 0;
  std::vector<SyncRound> rounds;
};
/// Writes the protocols in parts between collectives, which the protocols of a bundle share.
void build_protocols(const BundleContext& context, const std::vector<Protocol>& protocols);

}  // namespace cinch::rt
