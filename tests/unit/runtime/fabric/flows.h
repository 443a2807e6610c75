// Patterns of flows, and loads of links that are computed from pieces by hand.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include "runtime/fabric/route_flows.h"

namespace cinch::rt {

using Flows = std::vector<Flow>;
constexpr std::int64_t kUnits = 720720;  // what all numbers up to 16 divide

inline Flows all_to_all(std::uint32_t num_hosts) {
  Flows flows;
  for (std::uint32_t source = 0; source < num_hosts; ++source) {
    for (std::uint32_t destination = 0; destination < num_hosts; ++destination) {
      if (source != destination) flows.push_back({source, destination, 1});
    }
  }
  return flows;
}

// The first step of halving and doubling: hosts half of all apart.
inline Flows far_step(std::uint32_t num_hosts) {
  Flows flows;
  for (std::uint32_t host = 0; host < num_hosts; ++host) {
    flows.push_back({host, host ^ (num_hosts / 2), 1});
  }
  return flows;
}

inline Flows shifted(std::uint32_t num_hosts, std::uint32_t distance) {
  Flows flows;
  for (std::uint32_t host = 0; host < num_hosts; ++host) {
    flows.push_back({host, (host + distance) % num_hosts, 1});
  }
  return flows;
}

inline Flows random_flows(std::mt19937& random, std::uint32_t num_hosts, std::size_t count) {
  Flows flows;
  while (flows.size() < count) {
    const auto source = static_cast<std::uint32_t>(random() % num_hosts);
    const auto destination = static_cast<std::uint32_t>(random() % num_hosts);
    if (source != destination) flows.push_back({source, destination, 1});
  }
  return flows;
}

/// What is wrong with the pieces of a flow, which must cover it once, in order, over spines that
/// are up, each once; or within the leaf. `units`: what all parts divide.
inline const char* fault_of(const Fabric& fabric, const Flow& flow,
                            std::span<const FlowPiece> pieces, std::int64_t units) {
  const std::uint32_t from = flow.source / fabric.hosts_per_leaf;
  const std::uint32_t to = flow.destination / fabric.hosts_per_leaf;
  std::int64_t covered = 0;
  std::vector<bool> is_used(fabric.num_spines, false);
  for (const FlowPiece& piece : pieces) {
    if (units % piece.parts != 0) return "odd parts";
    if (piece.begin * (units / piece.parts) != covered) return "a gap, or an overlap";
    if (piece.end <= piece.begin) return "an empty piece";
    covered = piece.end * (units / piece.parts);
    if (from == to && piece.spine != kWithinLeaf) return "a way round";
    if (from == to) continue;
    if (piece.spine >= fabric.num_spines) return "no such spine";
    if (is_used[piece.spine]) return "a spine twice";
    is_used[piece.spine] = true;
    for (const std::uint32_t down : fabric.down_spines) {
      if (piece.spine == down) return "a spine that is down";
    }
    for (const SpineLink down : fabric.down_links) {
      const bool is_at_end = down.leaf == from || down.leaf == to;
      if (is_at_end && down.spine == piece.spine) return "a link that is down";
    }
  }
  if (from == to && pieces.size() != 1) return "a cut within a leaf";
  return covered == units ? nullptr : "not all of the flow";
}

/// The largest load of a link, from pieces that are checked on the way.
inline Fraction largest_load_by_hand(const Fabric& fabric, const Flows& flows,
                                     const Routing& routing, std::int64_t units) {
  std::vector<std::int64_t> up(std::size_t{fabric.num_leaves} * fabric.num_spines, 0), down = up;
  std::size_t begin = 0, end = 0;
  for (std::uint32_t i = 0; i < flows.size(); ++i, begin = end) {
    while (end < routing.pieces.size() && routing.pieces[end].flow == i) ++end;
    const auto pieces = std::span(routing.pieces).subspan(begin, end - begin);
    const char* const fault = fault_of(fabric, flows[i], pieces, units);
    if (fault != nullptr) {
      ADD_FAILURE() << "flow " << i << ": " << fault;
      return {};
    }
    for (const FlowPiece& piece : pieces) {
      if (piece.spine == kWithinLeaf) continue;
      const std::int64_t load = (piece.end - piece.begin) * (units / piece.parts) *
                                static_cast<std::int64_t>(flows[i].bytes);
      up[flows[i].source / fabric.hosts_per_leaf * fabric.num_spines + piece.spine] += load;
      down[flows[i].destination / fabric.hosts_per_leaf * fabric.num_spines + piece.spine] += load;
    }
  }
  EXPECT_EQ(end, routing.pieces.size());
  const std::int64_t largest = std::max(std::ranges::max(up), std::ranges::max(down));
  const std::int64_t common = std::gcd(largest, units);
  return {static_cast<std::uint64_t>(largest / common), static_cast<std::uint64_t>(units / common)};
}

struct Routed {
  Routing routing;
  RoutingReport report;
};
/// Routes, and compares the reported load with the one by hand.
inline Routed route(const Fabric& fabric, const Flows& flows, const RoutingOptions& options,
                    std::int64_t units) {
  auto routing = route_flows(fabric, flows, options);
  EXPECT_TRUE(routing.has_value()) << (routing ? "" : routing.error().message);
  if (!routing) return {};
  auto report = report_routing(fabric, flows, *routing);
  EXPECT_TRUE(report.has_value());
  if (!report) return {};
  EXPECT_EQ(report->largest_load, largest_load_by_hand(fabric, flows, *routing, units));
  EXPECT_EQ(report->num_pieces, routing->pieces.size());
  EXPECT_EQ(report->num_flows, flows.size());
  return {*std::move(routing), *report};
}

inline std::ostream& operator<<(std::ostream& to, const Fraction& load) {
  return to << load.numerator << '/' << load.denominator;
}

}  // namespace cinch::rt
