// Plans in which partial sums travel from rank to rank.
#include <algorithm>

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
  for (const std::uint32_t group : groups) results.push_back(c.add_slot(group));
  for (std::uint32_t hop = 0; hop + 1 < c.world; ++hop) {
    const std::uint32_t leaves = groups[group_at(1 + hop)], comes = groups[group_at(2 + hop)];
    const std::uint32_t out = c.add_slot(leaves), in = c.add_slot(comes);
    const bool is_first = hop == 0;
    c.to.encode(is_first ? Site::Worker : Site::Hop, is_first ? Value::Gradient : Value::Sum,
                {leaves}, {out});
    c.to.send(leaves, out, next);
    c.to.receive(comes, in, previous);
    c.to.clear(comes);
    c.to.decode_add(is_first ? Site::Worker : Site::Hop, comes, in);
    c.to.add_gradient(comes);
  }
  const std::uint32_t own = groups[c.rank];
  if (c.world == 1) {
    c.to.clear(own);
    c.to.add_gradient(own);
  }
  c.to.finish(own, Value::Sum);
  c.to.encode(Site::Owner, Value::Sum, {own}, {results[c.rank]});
  for (std::uint32_t hop = 0; hop + 1 < c.world; ++hop) {
    const std::uint32_t leaves = group_at(hop), comes = group_at(1 + hop);
    c.to.send(groups[leaves], results[leaves], next);
    c.to.receive(groups[comes], results[comes], previous);
  }
  c.to.decode(Site::Owner, groups, results, Value::Update);
}

// A binomial tree: the parent of a rank is the rank without its lowest bit.
void build_tree(const BundleContext& c) {
  const std::uint32_t group = c.bundle.groups[0];
  const std::uint32_t lowest = c.rank == 0 ? 0 : c.rank & (~c.rank + 1);
  const std::uint32_t parent = c.rank - lowest;
  std::vector<std::uint32_t> children;
  for (std::uint32_t bit = 1; (c.rank == 0 || bit < lowest) && c.rank + bit < c.world; bit *= 2) {
    children.push_back(c.rank + bit);
  }
  const auto site_of = [&](std::uint32_t rank) {
    const bool is_leaf = rank % 2 == 1 || rank + 1 >= c.world;
    return is_leaf && rank != 0 ? Site::Worker : Site::Hop;
  };
  const std::uint32_t result = c.add_slot(group);
  if (c.rank == 0 || !children.empty()) {
    c.to.clear(group);
    c.to.add_gradient(group);
  }
  for (const std::uint32_t child : children) {
    const std::uint32_t in = c.add_slot(group);
    c.to.receive(group, in, child);
    c.to.decode_add(site_of(child), group, in);
  }
  if (c.rank == 0) {
    c.to.finish(group, Value::Sum);
    c.to.encode(Site::Owner, Value::Sum, {group}, {result});
  } else {
    const std::uint32_t out = c.add_slot(group);
    const bool is_leaf = children.empty();
    c.to.encode(site_of(c.rank), is_leaf ? Value::Gradient : Value::Sum, {group}, {out});
    c.to.send(group, out, parent);
    c.to.receive(group, result, parent);
  }
  std::ranges::reverse(children);
  for (const std::uint32_t child : children) c.to.send(group, result, child);
  c.to.decode(Site::Owner, {group}, {result}, Value::Update);
}

}  // namespace cinch::rt
