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
  /// By group: the group that carries its sums (Group::carries). Empty: see BundleContext.
  std::vector<std::uint32_t> carriers = {};
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

/// Adds the groups that carry the sums of bundles whose codecs have a carrier of their own.
Status add_carriers(const PlanRequest& request, Plan& plan, std::vector<Bundle>& bundles);

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
  // How sums travel that are encoded again: by the bundle's carriers, in f32, or else by the
  // groups' own codec.
  bool has_exact_sums = false;
  bool are_sums_sized = false;  // messages of sums have lengths
  /// What ranks multiply gradients by before others add to them, where fields are too narrow for
  /// the sum; else 1.
  float narrowing = 1;

  /// Do groups carry their own sums? Then ranks may add a gradient that was never encoded.
  bool carries_itself() const { return !has_exact_sums && bundle.carriers.empty(); }
  /// The group that payloads of the group's sums belong to.
  std::uint32_t sum_group(std::uint32_t group) const;

  // The same as the calls of RankBuilder and add_slot, for sums.
  std::uint32_t add_sum_slot(std::uint32_t group) const;
  std::vector<std::uint32_t> sum_groups(const std::vector<std::uint32_t>& groups) const;
  void encode_sums(Site site, const std::vector<std::uint32_t>& groups,
                   const std::vector<std::uint32_t>& slots) const;
  void decode_sums(Site site, const std::vector<std::uint32_t>& groups,
                   const std::vector<std::uint32_t>& slots, Value to) const;
  void decode_add_sum(Site site, std::uint32_t group, std::uint32_t slot) const;
  /// Encodes this rank's gradient for a sum on its way.
  void encode_own(std::uint32_t group, std::uint32_t slot) const;
  /// Begins a sum with this rank's gradient: as it is, or as its payload decodes.
  void begin_sum(std::uint32_t group) const;
  void finish_sum(std::uint32_t group, Value to_value) const;

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
