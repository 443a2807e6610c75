// Plans in which every rank exchanges with all others at once.
#include <algorithm>
#include <bit>

#include "runtime/planner/builders/builders.h"

namespace cinch::rt {
namespace {

using Slots = std::vector<std::uint32_t>;

// The owner of a group adds up the payloads of all ranks.
void sum_up(const BundleContext& c, std::uint32_t group, const Slots& received) {
  c.to.clear(group);
  for (const std::uint32_t slot : received) c.to.decode_add(Site::Worker, group, slot);
}

Slots slots_of(const BundleContext& c, const std::vector<std::uint32_t>& groups) {
  Slots slots;
  for (const std::uint32_t group : groups) slots.push_back(c.add_slot(group));
  return slots;
}

Slots sum_slots_of(const BundleContext& c, const std::vector<std::uint32_t>& groups) {
  Slots slots;
  for (const std::uint32_t group : groups) slots.push_back(c.add_sum_slot(group));
  return slots;
}

// One slot for each rank, for payloads of one group; this rank's slot exists already.
Slots slots_by_rank(const BundleContext& c, std::uint32_t group, std::uint32_t own) {
  Slots slots;
  for (std::uint32_t rank = 0; rank < c.world; ++rank) {
    slots.push_back(rank == c.rank ? own : c.add_slot(group));
  }
  return slots;
}

using Slots = std::vector<std::uint32_t>;

}  // namespace

void build_allreduce(const BundleContext& c) {
  const std::uint32_t group = c.bundle.groups[0], slot = c.add_slot(group);
  c.to.encode(Site::Worker, Value::Gradient, {group}, {slot});
  c.to.all_reduce(group, slot, kF32, RankReduction::Sum);
  c.to.decode(Site::Worker, {group}, {slot}, Value::Sum);
  c.to.finish(group, Value::Update);
}

void build_summed(const BundleContext& c) {
  const std::uint32_t group = c.bundle.groups[0], own = c.add_slot(group), all = c.add_slot(group);
  c.encode_own(group, own);
  Slots arrays;
  for (const SumArray& array : c.sum_arrays) {
    arrays.push_back(c.to.add_slot(static_cast<std::uint64_t>(array.size_bytes())));
  }
  c.to.spread(group, own, arrays);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    c.to.all_reduce(group, arrays[i], c.sum_arrays[i].dtype, c.sum_arrays[i].reduction);
  }
  c.to.join(group, own, arrays, all);
  c.to.decode(Site::Worker, {group}, {all}, Value::Sum);
  c.finish_sum(group, Value::Update);
}

void build_allgather(const BundleContext& c) {
  const std::uint32_t group = c.bundle.groups[0], own = c.add_slot(group);
  c.to.encode(Site::Worker, Value::Gradient, {group}, {own});
  const Slots all = slots_by_rank(c, group, own);
  c.to.all_gather({group}, own, all);
  sum_up(c, group, all);
  c.to.finish(group, Value::Update);
}

// Groups are the ranks' parts: each rank gets the sum of its own part.
void sum_own_part(const BundleContext& c) {
  const auto& groups = c.bundle.groups;
  const std::uint32_t own = groups[c.rank];
  const Slots sent = slots_of(c, groups);
  c.to.encode(Site::Worker, Value::Gradient, groups, sent);
  const Slots received = slots_by_rank(c, own, sent[c.rank]);
  c.to.all_to_all(groups, sent, received);
  sum_up(c, own, received);
}

void build_two_shot(const BundleContext& c) {
  const auto& groups = c.bundle.groups;
  const std::uint32_t own = groups[c.rank];
  sum_own_part(c);
  c.to.finish(own, Value::Sum);
  const Slots results = sum_slots_of(c, groups);
  c.encode_sums(Site::Owner, {own}, {results[c.rank]});
  c.to.all_gather(c.sum_groups(groups), results[c.rank], results);
  c.decode_sums(Site::Owner, groups, results, Value::Update);
}

void build_reduce_scatter(const BundleContext& c) {
  sum_own_part(c);
  c.to.finish(c.bundle.groups[c.rank], Value::Update);
}

void build_ps(const BundleContext& c) {
  const auto& groups = c.bundle.groups;
  const Slots sent = slots_of(c, groups), results = sum_slots_of(c, groups);
  c.to.encode(Site::Worker, Value::Gradient, groups, sent);
  c.to.begin_round(c.is_sized);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (c.servers[i] != c.rank) c.to.send(groups[i], sent[i], c.servers[i]);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (c.servers[i] != c.rank) continue;
    const Slots received = slots_by_rank(c, groups[i], sent[i]);
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
      if (rank != c.rank) c.to.receive(groups[i], received[rank], rank);
    }
    sum_up(c, groups[i], received);
    c.to.finish(groups[i], Value::Sum);
    c.encode_sums(Site::Owner, {groups[i]}, {results[i]});
  }
  c.to.begin_round(c.are_sums_sized);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (c.servers[i] != c.rank) continue;
    for (std::uint32_t rank = 0; rank < c.world; ++rank) {
      if (rank != c.rank) c.to.send(c.sum_group(groups[i]), results[i], rank);
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (c.servers[i] != c.rank) c.to.receive(c.sum_group(groups[i]), results[i], c.servers[i]);
  }
  c.decode_sums(Site::Owner, groups, results, Value::Update);
}

// Plans in which partial sums travel from rank to rank.

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

// How sums travel that are encoded again: by the groups' own codec, by its carrier, or in f32.

std::uint32_t BundleContext::sum_group(std::uint32_t group) const {
  if (bundle.carriers.empty()) return group;
  const auto at = std::ranges::find(bundle.groups, group) - bundle.groups.begin();
  return bundle.carriers[static_cast<std::size_t>(at)];
}

std::vector<std::uint32_t> BundleContext::sum_groups(
    const std::vector<std::uint32_t>& groups) const {
  std::vector<std::uint32_t> sums;
  sums.reserve(groups.size());
  for (const std::uint32_t group : groups) sums.push_back(sum_group(group));
  return sums;
}

std::uint32_t BundleContext::add_sum_slot(std::uint32_t group) const {
  if (has_exact_sums) return to.add_slot(dense_bytes(plan, group));
  const std::uint64_t bytes = message_bytes(plan, sum_group(group));
  return are_sums_sized ? to.add_sized_slot(bytes) : to.add_slot(bytes);
}

void BundleContext::encode_sums(Site site, const std::vector<std::uint32_t>& groups,
                                const std::vector<std::uint32_t>& slots) const {
  if (!has_exact_sums) return to.encode(site, Value::Sum, sum_groups(groups), slots);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    to.encode_dense(Value::Sum, groups[i], slots[i], site);
  }
}

void BundleContext::decode_sums(Site site, const std::vector<std::uint32_t>& groups,
                                const std::vector<std::uint32_t>& slots, Value to_value) const {
  if (!has_exact_sums) return to.decode(site, sum_groups(groups), slots, to_value);
  for (std::size_t i = 0; i < groups.size(); ++i) to.decode_dense(groups[i], slots[i], to_value);
}

void BundleContext::decode_add_sum(Site site, std::uint32_t group, std::uint32_t slot) const {
  if (has_exact_sums) return to.decode_add_dense(group, slot);
  to.decode_add(site, sum_group(group), slot);
}

void BundleContext::encode_own(std::uint32_t group, std::uint32_t slot) const {
  if (narrowing == 1) return to.encode(Site::Worker, Value::Gradient, {group}, {slot});
  to.clear(group);
  to.add_gradient(group);
  to.scale(group, narrowing);
  to.encode(Site::Worker, Value::Sum, {group}, {slot});
}

void BundleContext::begin_sum(std::uint32_t group) const {
  if (carries_itself()) {
    to.clear(group);
    to.add_gradient(group);
    if (narrowing != 1) to.scale(group, narrowing);
    return;
  }
  const std::uint32_t slot = add_slot(group);
  encode_own(group, slot);
  to.clear(group);
  to.decode_add(Site::Worker, group, slot);
}

void BundleContext::finish_sum(std::uint32_t group, Value to_value) const {
  if (narrowing != 1) to.scale(group, 1 / narrowing);
  to.finish(group, to_value);
}

}  // namespace cinch::rt
