#include "runtime/simulator/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cinch::rt {
namespace {

constexpr std::uint64_t kMostFabricRanks = 1 << 17, kMostUplinks = 1 << 20;

}  // namespace

const char* tier_name(Tier tier) {
  switch (tier) {
    case Tier::Machine:
      return "machine";
    case Tier::Nic:
      return "nic";
    case Tier::Leaf:
      return "leaf";
    case Tier::Core:
      return "core";
    case Tier::Site:
      break;
  }
  return "site";
}

Result<Topology> Topology::make(Shape shape) {
  Topology made(std::move(shape));
  CINCH_TRY(made.count_ranks());
  made.add_links();
  for (const Change& change : made.shape_.changes) CINCH_TRY(made.apply(change));
  return made;
}

Status Topology::count_ranks() {
  first_leaf_ = {0};
  first_rank_ = {0};
  for (const std::uint32_t machines : shape_.machines) {
    const std::size_t site = first_leaf_.size() - 1;
    if (machines == 0 || machines % shape_.machines_per_leaf != 0) {
      return invalid(fmt::format("site {}: {} machines do not fill leaves of {}", site, machines,
                                 shape_.machines_per_leaf));
    }
    const std::uint64_t ranks =
        first_rank_.back() + std::uint64_t{machines} * shape_.ranks_per_machine;
    if (ranks > kMostFabricRanks) {
      return invalid(fmt::format("site {}: {} ranks so far, at most {} are described", site, ranks,
                                 kMostFabricRanks));
    }
    const std::uint32_t leaves = machines / shape_.machines_per_leaf;
    const std::uint32_t in_pod = shape_.leaves_per_pod == 0 ? leaves : shape_.leaves_per_pod;
    if (leaves % in_pod != 0) {
      return invalid(
          fmt::format("site {}: {} leaves do not fill pods of {}", site, leaves, in_pod));
    }
    const std::uint32_t first_pod = num_pods();
    for (std::uint32_t i = 0; i < leaves; ++i) pod_of_leaf_.push_back(first_pod + i / in_pod);
    first_leaf_.push_back(first_leaf_.back() + leaves);
    first_rank_.push_back(static_cast<std::uint32_t>(ranks));
  }
  if (std::uint64_t{num_leaves()} * shape_.spines > kMostUplinks) {
    return invalid(fmt::format("{} leaves of {} spines each: at most {} links join them",
                               num_leaves(), shape_.spines, kMostUplinks));
  }
  num_ranks_ = first_rank_.back();
  if (num_ranks_ == 0) return invalid("a topology without machines");
  return Ok{};
}

// Links stand in pairs.
void Topology::add_links() {
  const auto add = [this](std::uint64_t pairs, const Port& port) {
    const auto first = static_cast<std::uint32_t>(speeds_.size());
    speeds_.resize(first + 2 * pairs, port.bytes_per_second);
    return first;
  };
  add(num_ranks_, shape_.machine);
  first_nic_ = add(num_ranks_, shape_.nic);
  first_uplink_ = add(std::uint64_t{num_leaves()} * shape_.spines, shape_.uplink);
  const bool has_core = shape_.leaves_per_pod > 0;
  first_core_ = add(has_core ? std::uint64_t{num_pods()} * shape_.spines : 0, shape_.core);
  first_join_ = static_cast<std::uint32_t>(speeds_.size());
  for (const Join& join : shape_.joins) add(1, join.port);
}

Topology::Place Topology::place_of(std::uint32_t link) const {
  const bool is_second = link % 2 == 1;
  const auto pair_from = [link](std::uint32_t first) { return (link - first) / 2; };
  if (link < first_nic_) return {Tier::Machine, pair_from(0), 0, is_second};
  if (link < first_uplink_) return {Tier::Nic, pair_from(first_nic_), 0, is_second};
  if (link >= first_join_) return {Tier::Site, pair_from(first_join_), 0, is_second};
  const bool is_core = link >= first_core_;
  const std::uint32_t pair = pair_from(is_core ? first_core_ : first_uplink_);
  return {is_core ? Tier::Core : Tier::Leaf, pair / shape_.spines, pair % shape_.spines, is_second};
}

std::string Topology::name_of(std::uint32_t link) const {
  const Place place = place_of(link);
  const char* const outside = place.is_second ? "in" : "out";
  const char* const upward = place.is_second ? "down" : "up";
  switch (place.tier) {
    case Tier::Machine:
      return fmt::format("rank{} in its machine {}", place.index, outside);
    case Tier::Nic:
      return fmt::format("rank{} {}", place.index, outside);
    case Tier::Leaf:
      return fmt::format("leaf{}-spine{} {}", place.index, place.spine, upward);
    case Tier::Core:
      return fmt::format("pod{}-spine{} {}", place.index, place.spine, upward);
    case Tier::Site:
      break;
  }
  const Join& join = shape_.joins[place.index];
  return fmt::format("site{}-site{} {}", join.from, join.to, outside);
}

Status Topology::apply(const Change& change) {
  bool is_there = false;
  for (std::uint32_t link = 0; link < num_links(); ++link) {
    const Tier tier = place_of(link).tier;
    const std::string name = name_of(link);
    if (name.substr(0, name.rfind(' ')) != change.link) continue;
    speeds_[link] *= change.share;
    if (tier == Tier::Leaf || tier == Tier::Core) are_uplinks_alike_ = false;
    is_there = true;
  }
  if (is_there) return Ok{};
  return invalid(fmt::format("there is no link {}", change.link));
}

std::uint32_t Topology::leaf_of(std::uint32_t rank) const {
  const std::uint32_t site = site_of(rank);
  const std::uint32_t machine = (rank - first_rank_[site]) / shape_.ranks_per_machine;
  return first_leaf_[site] + machine / shape_.machines_per_leaf;
}

std::uint32_t Topology::site_of(std::uint32_t rank) const {
  const auto behind = std::ranges::upper_bound(first_rank_, rank);
  return static_cast<std::uint32_t>(behind - first_rank_.begin()) - 1;
}

// All leaves have as many ranks.
std::pair<std::uint32_t, std::uint32_t> Topology::ranks_of_leaf(std::uint32_t leaf) const {
  const std::uint32_t size = shape_.machines_per_leaf * shape_.ranks_per_machine;
  return {leaf * size, (leaf + 1) * size};
}

std::pair<std::uint32_t, std::uint32_t> Topology::ranks_of_pod(std::uint32_t pod) const {
  const auto [first, end] = std::ranges::equal_range(pod_of_leaf_, pod);
  const auto leaf = static_cast<std::uint32_t>(first - pod_of_leaf_.begin());
  const auto behind = static_cast<std::uint32_t>(end - pod_of_leaf_.begin());
  return {ranks_of_leaf(leaf).first, ranks_of_leaf(behind).first};
}

std::array<double, 4> Topology::speeds_of_rank(std::uint32_t rank) const {
  const std::uint32_t nic = first_nic_ + 2 * rank;
  return {speeds_[std::size_t{2} * rank], speeds_[std::size_t{2} * rank + 1], speeds_[nic],
          speeds_[nic + 1]};
}

std::vector<double> Topology::speeds_of_leaf(std::uint32_t leaf) const {
  const auto first = speeds_.begin() + uplink(leaf, 0);
  return {first, first + 2 * static_cast<std::ptrdiff_t>(shape_.spines)};
}

std::vector<double> Topology::speeds_of_pod(std::uint32_t pod) const {
  if (shape_.leaves_per_pod == 0) return {};
  const auto first = speeds_.begin() + core_link(pod, 0);
  return {first, first + 2 * static_cast<std::ptrdiff_t>(shape_.spines)};
}

Result<FabricRoute> Topology::route(std::uint32_t from, std::uint32_t to,
                                    std::span<const SpineShare> spines) const {
  auto route = TRY(find_route(from, to, spines));
  for (const FlowLink& link : route.path.links) {
    if (speeds_[link.link] > 0) continue;
    return invalid(
        fmt::format("rank {} does not reach rank {}: {} is down", from, to, name_of(link.link)));
  }
  return route;
}

Status Topology::add_join(std::uint32_t from_site, std::uint32_t to_site,
                          FabricRoute& route) const {
  const auto joins = [&](const Join& join) {
    return (join.from == from_site && join.to == to_site) ||
           (join.from == to_site && join.to == from_site);
  };
  const auto found = std::ranges::find_if(shape_.joins, joins);
  if (found == shape_.joins.end()) {
    return invalid(fmt::format("no link joins site {} and site {}", from_site, to_site));
  }
  const auto number = static_cast<std::uint32_t>(found - shape_.joins.begin());
  route.path.links.push_back({first_join_ + 2 * number + (found->from == from_site ? 0 : 1), 1});
  route.latency += found->port.latency;
  route.path.most_bytes_per_second = found->most_of_stream;
  return Ok{};
}

Status Topology::add_spines(std::uint32_t from_leaf, std::uint32_t to_leaf,
                            std::span<const SpineShare> given, FabricRoute& route) const {
  const std::uint32_t pods[] = {pod_of_leaf(from_leaf), pod_of_leaf(to_leaf)};
  const bool crosses = pods[0] != pods[1];
  std::vector<SpineShare> spines(given.begin(), given.end());
  for (std::uint32_t spine = 0; spine < shape_.spines && given.empty(); ++spine) {
    const bool is_up = speeds_[uplink(from_leaf, spine)] > 0 && speeds_[uplink(to_leaf, spine)] > 0;
    const bool reaches = !crosses || (speeds_[core_link(pods[0], spine)] > 0 &&
                                      speeds_[core_link(pods[1], spine)] > 0);
    if (is_up && reaches) spines.push_back({spine});
  }
  if (spines.empty()) {
    return invalid(fmt::format("no spine joins leaf {} and leaf {}", from_leaf, to_leaf));
  }
  const double equal = 1.0 / static_cast<double>(spines.size());
  for (const auto& [spine, share] : spines) {
    const double part = given.empty() ? equal : share;
    route.path.links.push_back({uplink(from_leaf, spine), part});
    route.path.links.push_back({uplink(to_leaf, spine) + 1, part});
    if (!crosses) continue;
    route.path.links.push_back({core_link(pods[0], spine), part});
    route.path.links.push_back({core_link(pods[1], spine) + 1, part});
  }
  route.latency += 2 * shape_.uplink.latency + (crosses ? 2 * shape_.core.latency : 0);
  return Ok{};
}

Result<FabricRoute> Topology::find_route(std::uint32_t from, std::uint32_t to,
                                         std::span<const SpineShare> spines) const {
  FabricRoute route;
  const auto over = [&route](std::uint32_t link, Picoseconds latency) {
    route.path.links.push_back({link, 1});
    route.latency += latency;
  };
  if (machine_of(from) == machine_of(to)) {
    over(2 * from, shape_.machine.latency);
    over(2 * to + 1, 0);
    return route;
  }
  over(first_nic_ + 2 * from, shape_.nic.latency);
  const std::uint32_t leaves[] = {leaf_of(from), leaf_of(to)};
  const std::uint32_t sites[] = {site_of(from), site_of(to)};
  if (sites[0] != sites[1]) {
    CINCH_TRY(add_join(sites[0], sites[1], route));
  } else if (leaves[0] != leaves[1]) {
    CINCH_TRY(add_spines(leaves[0], leaves[1], spines, route));
  }
  over(first_nic_ + 2 * to + 1, shape_.nic.latency);
  return route;
}

}  // namespace cinch::rt
