#include "runtime/simulator/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/core/json.h"

namespace cinch::rt {
namespace {

constexpr double kSecond = 1e12;  // in picoseconds
constexpr std::uint64_t kMostFabricRanks = 1 << 17, kMostUplinks = 1 << 20;

}  // namespace

Result<Topology> Topology::make(Shape shape) {
  Topology made(std::move(shape));
  CINCH_TRY(made.add_links());
  for (const Change& change : made.shape_.changes) CINCH_TRY(made.apply(change));
  return made;
}

std::uint32_t Topology::num_leaves() const {
  return first_leaf_.back();
}

// Links stand in pairs: out and in of ranks within machines, of ranks to leaves, of leaves to
// spines, and both ways between sites.
Status Topology::add_links() {
  first_leaf_ = {0};
  first_rank_ = {0};
  for (const std::uint32_t machines : shape_.machines) {
    if (machines == 0 || machines % shape_.machines_per_leaf != 0) {
      return invalid(fmt::format("site {}: {} machines do not fill leaves of {}",
                                 first_leaf_.size() - 1, machines, shape_.machines_per_leaf));
    }
    const std::uint64_t ranks =
        first_rank_.back() + std::uint64_t{machines} * shape_.ranks_per_machine;
    if (ranks > kMostFabricRanks) {
      return invalid(fmt::format("site {}: {} ranks so far, at most {} are described",
                                 first_leaf_.size() - 1, ranks, kMostFabricRanks));
    }
    first_leaf_.push_back(first_leaf_.back() + machines / shape_.machines_per_leaf);
    first_rank_.push_back(static_cast<std::uint32_t>(ranks));
  }
  if (std::uint64_t{num_leaves()} * shape_.spines > kMostUplinks) {
    return invalid(fmt::format("{} leaves of {} spines each: at most {} links join them",
                               num_leaves(), shape_.spines, kMostUplinks));
  }
  num_ranks_ = first_rank_.back();
  if (num_ranks_ == 0) return invalid("a topology without machines");
  const auto add = [this](std::string name, const char* tier, const Port& port) {
    links_.push_back(
        {name + (tier == std::string_view("leaf") ? " up" : " out"), tier, port.bytes_per_second});
    links_.push_back({std::move(name) + (tier == std::string_view("leaf") ? " down" : " in"), tier,
                      port.bytes_per_second});
  };
  for (std::uint32_t rank = 0; rank < num_ranks_; ++rank) {
    add(fmt::format("rank{} in its machine", rank), "machine", shape_.machine);
  }
  first_nic_ = static_cast<std::uint32_t>(links_.size());
  for (std::uint32_t rank = 0; rank < num_ranks_; ++rank) {
    add(fmt::format("rank{}", rank), "nic", shape_.nic);
  }
  first_uplink_ = static_cast<std::uint32_t>(links_.size());
  for (std::uint32_t leaf = 0; leaf < num_leaves(); ++leaf) {
    for (std::uint32_t spine = 0; spine < shape_.spines; ++spine) {
      add(fmt::format("leaf{}-spine{}", leaf, spine), "leaf", shape_.uplink);
    }
  }
  first_join_ = static_cast<std::uint32_t>(links_.size());
  for (const Join& join : shape_.joins) {
    add(fmt::format("site{}-site{}", join.from, join.to), "site", join.port);
  }
  return Ok{};
}

Status Topology::apply(const Change& change) {
  bool is_there = false;
  for (FabricLink& link : links_) {
    if (link.name.substr(0, link.name.rfind(' ')) != change.link) continue;
    link.bytes_per_second *= change.share;
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

Result<FabricRoute> Topology::route(std::uint32_t from, std::uint32_t to) const {
  auto route = TRY(find_route(from, to));
  for (const FlowLink& link : route.path.links) {
    const FabricLink& of = links_[link.link];
    if (of.bytes_per_second == 0) {
      return invalid(fmt::format("rank {} does not reach rank {}: {} is down", from, to, of.name));
    }
  }
  return route;
}

Result<FabricRoute> Topology::find_route(std::uint32_t from, std::uint32_t to) const {
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
    const auto joins = [&](const Join& join) {
      return (join.from == sites[0] && join.to == sites[1]) ||
             (join.from == sites[1] && join.to == sites[0]);
    };
    const auto found = std::ranges::find_if(shape_.joins, joins);
    if (found == shape_.joins.end()) {
      return invalid(fmt::format("no link joins site {} and site {}", sites[0], sites[1]));
    }
    const auto number = static_cast<std::uint32_t>(found - shape_.joins.begin());
    over(first_join_ + 2 * number + (found->from == sites[0] ? 0 : 1), found->port.latency);
    route.path.most_bytes_per_second = found->most_of_stream;
  } else if (leaves[0] != leaves[1]) {
    std::vector<std::uint32_t> spines;
    for (std::uint32_t spine = 0; spine < shape_.spines; ++spine) {
      const auto speed = [&](std::uint32_t leaf) {
        return links_[first_uplink_ + 2 * (leaf * shape_.spines + spine)].bytes_per_second;
      };
      if (speed(leaves[0]) > 0 && speed(leaves[1]) > 0) spines.push_back(spine);
    }
    if (spines.empty()) {
      return invalid(fmt::format("no spine joins leaf {} and leaf {}", leaves[0], leaves[1]));
    }
    for (const std::uint32_t spine : spines) {
      const double part = 1.0 / static_cast<double>(spines.size());
      route.path.links.push_back({first_uplink_ + 2 * (leaves[0] * shape_.spines + spine), part});
      route.path.links.push_back(
          {first_uplink_ + 2 * (leaves[1] * shape_.spines + spine) + 1, part});
    }
    route.latency += 2 * shape_.uplink.latency;
  }
  over(first_nic_ + 2 * to + 1, shape_.nic.latency);
  return route;
}

namespace {

constexpr const char* kTopologyKind = "cinch topology";
constexpr int kTopologyFormat = 1;
constexpr std::uint64_t kMostParts = 1 << 20;  // ranks, machines, leaves, spines

double positive(const JsonPart& part) {
  const double value = part.number();
  if (value <= 0) part.refuse("is not above 0: " + part.value.dump());
  return value;
}

Picoseconds microseconds(const JsonPart& part) {
  return static_cast<Picoseconds>(std::llround(part.number() * kSecond / 1e6));
}

std::uint32_t number_in(const JsonPart& from, const char* key, std::optional<std::uint32_t> usual) {
  const auto found = from.find(key);
  if (!found && usual) return *usual;
  const JsonPart part = from.at(key);
  const auto count = static_cast<std::uint32_t>(part.count(kMostParts));
  if (count == 0) part.refuse("is not above 0: 0");
  return count;
}

Topology::Port read_port(const JsonPart& from) {
  constexpr double kBytesPerGigabit = 1e9 / 8;
  constexpr double kLeastGigabits = 1e-6;
  Topology::Port port;
  const JsonPart speed = from.at("gigabits");
  port.bytes_per_second = positive(speed) * kBytesPerGigabit;
  if (speed.number() < kLeastGigabits) speed.refuse("is less than a kilobit a second");
  if (const auto latency = from.find("latency_us")) port.latency = microseconds(*latency);
  return port;
}

Topology::Join read_join(const JsonPart& from, std::size_t num_sites) {
  constexpr double kMathis = 1.22;
  Topology::Join join;
  const JsonPart pair = from.at("sites");
  const std::vector<JsonPart> both = pair.entries();
  if (both.size() != 2) pair.refuse("are not two sites");
  join.from = static_cast<std::uint32_t>(both[0].count(num_sites - 1));
  join.to = static_cast<std::uint32_t>(both[1].count(num_sites - 1));
  if (join.from == join.to) pair.refuse("are the same site");
  join.port = read_port(from);
  const auto loss = from.find("loss");
  if (!loss || loss->number() == 0) return join;
  if (loss->number() >= 1) loss->refuse("is not a share below 1: " + loss->value.dump());
  const auto segment = from.find("segment_bytes");
  const double bytes = segment ? positive(*segment) : 1460;
  const double round_trip = 2 * static_cast<double>(join.port.latency) / kSecond;
  if (round_trip <= 0) from.refuse("loses bytes, and has no latency_us");
  join.most_of_stream = kMathis * bytes / (round_trip * std::sqrt(loss->number()));
  return join;
}

Topology::Shape read_shape(const JsonPart& file) {
  Topology::Shape shape;
  file.refuse_others({"file", "format", "ranks_per_machine", "machines_per_leaf", "spines",
                      "machine", "nic", "uplink", "sites", "joins", "links"});
  shape.ranks_per_machine = number_in(file, "ranks_per_machine", 1);
  shape.machines_per_leaf = number_in(file, "machines_per_leaf", 1);
  shape.nic = read_port(file.at("nic"));
  shape.machine = shape.ranks_per_machine == 1 ? shape.nic : read_port(file.at("machine"));
  if (const auto message = file.at("nic").find("message_us"))
    shape.message = microseconds(*message);
  const JsonPart sites = file.at("sites");
  std::uint64_t leaves = 0;
  for (const JsonPart& site : sites.entries()) {
    shape.machines.push_back(number_in(site, "machines", std::nullopt));
    leaves = std::max<std::uint64_t>(leaves, shape.machines.back() / shape.machines_per_leaf);
  }
  if (shape.machines.empty()) sites.refuse("has no site");
  // One leaf needs no spine.
  shape.spines = leaves > 1 ? number_in(file, "spines", std::nullopt) : 1;
  shape.uplink = leaves > 1 ? read_port(file.at("uplink")) : shape.nic;
  if (const auto joins = file.find("joins")) {
    for (const JsonPart& join : joins->entries()) {
      shape.joins.push_back(read_join(join, shape.machines.size()));
    }
  }
  if (const auto links = file.find("links")) {
    for (const JsonPart& link : links->entries()) {
      const JsonPart share = link.at("share");
      constexpr double kLeastShare = 1e-6;
      if (share.number() > 1) share.refuse("is more than all of its speed");
      if (share.number() > 0 && share.number() < kLeastShare) share.refuse("is nearly nothing");
      shape.changes.push_back({link.at("link").text(), share.number()});
    }
  }
  return shape;
}

}  // namespace

Result<Topology> topology_from_json(std::string_view text) {
  auto shape = TRY(read_json_file(text, kTopologyKind, kTopologyFormat, "topology", read_shape));
  return Topology::make(std::move(shape));
}

}  // namespace cinch::rt
