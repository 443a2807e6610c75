// The plans of planner.h, one function each. Each function writes the tasks of one rank for one
// bundle.
#pragma once
#include "runtime/planner/builders/rank_builder.h"
#include "runtime/planner/layout.h"

namespace cinch::rt {

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
