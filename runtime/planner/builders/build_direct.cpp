// Plans in which every rank exchanges with all others at once.
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

}  // namespace cinch::rt
