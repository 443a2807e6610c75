// Plans in which partial sums travel from rank to rank.
#include <bit>
#include <optional>

#include "runtime/planner/builders/builders.h"

namespace cinch::rt {
namespace {

using Slots = std::vector<std::uint32_t>;

}  // namespace

// Group c starts at rank c + 1 and goes round to rank c, its owner; then its result goes round once
// more.
void build_ring(const BundleContext& c) {
  const auto& groups = c.bundle.groups;
  const std::uint32_t next = (c.rank + 1) % c.world, previous = (c.rank + c.world - 1) % c.world;
  const auto group_at = [&](std::uint32_t back) { return (c.rank + c.world - back) % c.world; };
  Slots results;
  for (const std::uint32_t group : groups) results.push_back(c.add_sum_slot(group));
  for (std::uint32_t hop = 0; hop + 1 < c.world; ++hop) {
    const std::uint32_t leaves = groups[group_at(1 + hop)], comes = groups[group_at(2 + hop)];
    c.to.begin_round(hop == 0 ? c.is_sized : c.are_sums_sized);
    if (hop == 0) {
      const std::uint32_t out = c.add_slot(leaves), in = c.add_slot(comes);
      c.encode_own(leaves, out);
      c.to.send(leaves, out, next);
      c.to.receive(comes, in, previous);
      c.begin_sum(comes);
      c.to.decode_add(Site::Worker, comes, in);
    } else {
      const std::uint32_t out = c.add_sum_slot(leaves), in = c.add_sum_slot(comes);
      c.encode_sums(Site::Hop, {leaves}, {out});
      c.to.send(c.sum_group(leaves), out, next);
      c.to.receive(c.sum_group(comes), in, previous);
      c.begin_sum(comes);
      c.decode_add_sum(Site::Hop, comes, in);
    }
  }
  const std::uint32_t own = groups[c.rank];
  if (c.world == 1) c.begin_sum(own);
  c.finish_sum(own, Value::Sum);
  c.encode_sums(Site::Owner, {own}, {results[c.rank]});
  for (std::uint32_t hop = 0; hop + 1 < c.world; ++hop) {
    const std::uint32_t leaves = group_at(hop), comes = group_at(1 + hop);
    c.to.begin_round(c.are_sums_sized);
    c.to.send(c.sum_group(groups[leaves]), results[leaves], next);
    c.to.receive(c.sum_group(groups[comes]), results[comes], previous);
  }
  c.decode_sums(Site::Owner, groups, results, Value::Update);
}

// A binomial tree: the parent of a rank is the rank without its lowest bit. A rank without children
// sends its gradient's payload, the others send partial sums.
void build_tree(const BundleContext& c) {
  const std::uint32_t group = c.bundle.groups[0], sums = c.sum_group(group);
  const std::uint32_t lowest = c.rank == 0 ? 0 : c.rank & (~c.rank + 1);
  const std::uint32_t parent = c.rank - lowest;
  const auto num_levels = static_cast<std::uint32_t>(std::bit_width(c.world - 1));
  const auto child_at = [&](std::uint32_t level) -> std::optional<std::uint32_t> {
    const std::uint32_t bit = 1U << level, child = c.rank + bit;
    if ((c.rank != 0 && bit >= lowest) || child >= c.world) return std::nullopt;
    return child;
  };
  const auto is_leaf = [&](std::uint32_t rank) {
    return rank != 0 && (rank % 2 == 1 || rank + 1 >= c.world);
  };
  const std::uint32_t result = c.add_sum_slot(group);
  if (!is_leaf(c.rank)) c.begin_sum(group);
  for (std::uint32_t level = 0; level < num_levels; ++level) {
    // Payloads of leaves and sums travel in one round.
    c.to.begin_round(c.is_sized || c.are_sums_sized);
    const auto child = child_at(level);
    if (child && is_leaf(*child)) {
      const std::uint32_t in = c.add_slot(group);
      c.to.receive(group, in, *child);
      c.to.decode_add(Site::Worker, group, in);
    } else if (child) {
      const std::uint32_t in = c.add_sum_slot(group);
      c.to.receive(sums, in, *child);
      c.decode_add_sum(Site::Hop, group, in);
    }
    if (lowest != 1U << level) continue;
    if (is_leaf(c.rank)) {
      const std::uint32_t out = c.add_slot(group);
      c.encode_own(group, out);
      c.to.send(group, out, parent);
    } else {
      const std::uint32_t out = c.add_sum_slot(group);
      c.encode_sums(Site::Hop, {group}, {out});
      c.to.send(sums, out, parent);
    }
  }
  if (c.rank == 0) {
    c.finish_sum(group, Value::Sum);
    c.encode_sums(Site::Owner, {group}, {result});
  }
  // By the number of messages from rank 0.
  const auto depth = static_cast<std::uint32_t>(std::popcount(c.rank));
  for (std::uint32_t sent = 0; sent < num_levels; ++sent) {
    c.to.begin_round(c.are_sums_sized);
    if (depth == sent + 1) c.to.receive(sums, result, parent);
    for (std::uint32_t level = num_levels; depth == sent && level-- > 0;) {
      if (const auto child = child_at(level)) c.to.send(sums, result, *child);
    }
  }
  c.decode_sums(Site::Owner, {group}, {result}, Value::Update);
}

}  // namespace cinch::rt
