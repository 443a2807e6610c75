// The plans of planner.h, one function each: they write what one rank does for one bundle.
#pragma once
#include "runtime/planner/builders/rank_builder.h"
#include "runtime/planner/layout.h"

namespace cinch::rt {

struct BundleContext {
  const Plan& plan;
  const Bundle& bundle;
  RankBuilder& to;
  std::uint32_t rank = 0, world = 1;
  std::vector<std::uint32_t> servers;   // of ps: by owner
  bool is_sized = false;                // messages have lengths
  std::uint32_t ranks_per_machine = 1;  // of hierarchical, as what follows
  ExchangeOption option;
  std::vector<SumArray> sum_arrays;  // of allreduce: those of the group; none: plain f32

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
/// The `sync` of a group's one piece, and the collectives that it makes.
struct Protocol {
  std::uint32_t group = 0;
  std::vector<SyncRound> rounds;
};
/// In parts between collectives, which those of a bundle share.
void build_protocols(const BundleContext& context, const std::vector<Protocol>& protocols);

}  // namespace cinch::rt
