// Alone: one measurement that people start.
//
// What rules load links with, in how many pieces. And how much processor time it takes to colour
// and to route a million flows between leaves.
//
//   bench_fabric
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/fabric/edge_colouring.h"
#include "runtime/fabric/route_flows.h"

namespace {

using namespace cinch::rt;  // NOLINT(google-build-using-namespace): one short program
using Flows = std::vector<Flow>;

double seconds_of_cpu() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// A vertex has each colour once at most.
bool is_proper(const std::vector<BipartiteEdge>& edges, const EdgeColouring& colouring) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> left, right;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    left.emplace_back(edges[i].left, colouring.colours[i]);
    right.emplace_back(edges[i].right, colouring.colours[i]);
  }
  std::ranges::sort(left);
  std::ranges::sort(right);
  return std::ranges::adjacent_find(left) == left.end() &&
         std::ranges::adjacent_find(right) == right.end() &&
         std::ranges::max(colouring.colours) < colouring.num_colours;
}

Flows all_to_all(std::uint32_t num_hosts) {
  Flows flows;
  for (std::uint32_t source = 0; source < num_hosts; ++source) {
    for (std::uint32_t destination = 0; destination < num_hosts; ++destination) {
      if (source != destination) flows.push_back({source, destination, 1});
    }
  }
  return flows;
}

Flows permutations(std::uint32_t num_hosts, int count) {
  std::mt19937 random(2);
  std::vector<std::uint32_t> to(num_hosts);
  std::iota(to.begin(), to.end(), 0u);
  Flows flows;
  for (int i = 0; i < count; ++i) {
    std::ranges::shuffle(to, random);
    for (std::uint32_t host = 0; host < num_hosts; ++host) {
      if (to[host] != host) flows.push_back({host, to[host], 1});
    }
  }
  return flows;
}

Flows shifted(std::uint32_t num_hosts, std::uint32_t distance) {
  Flows flows;
  for (std::uint32_t host = 0; host < num_hosts; ++host) {
    flows.push_back({host, (host + distance) % num_hosts, 1});
  }
  return flows;
}

// All hosts send to those of the first leaf.
Flows incast(std::uint32_t num_hosts, std::uint32_t num_receivers) {
  Flows flows;
  for (std::uint32_t source = num_receivers; source < num_hosts; ++source) {
    for (std::uint32_t to = 0; to < num_receivers; ++to) flows.push_back({source, to, 1});
  }
  return flows;
}

void measure(const std::string& name, const Fabric& fabric, const Flows& flows) {
  std::vector<BipartiteEdge> edges;
  for (const Flow& flow : flows) {
    const BipartiteEdge edge{fabric.leaf_of(flow.source), fabric.leaf_of(flow.destination)};
    if (edge.left != edge.right) edges.push_back(edge);
  }
  std::vector<double> coloured, routed;
  std::string facts;
  for (int turn = 0; turn < 5; ++turn) {
    const double begun = seconds_of_cpu();
    const EdgeColouring colouring = colour_edges(edges, fabric.num_leaves, fabric.num_leaves);
    coloured.push_back(seconds_of_cpu() - begun);
    const double routed_from = seconds_of_cpu();
    const auto routing = route_flows(fabric, flows, {.rule = RoutingRule::Coloured});
    routed.push_back(seconds_of_cpu() - routed_from);
    if (!routing) throw std::runtime_error(routing.error().message);
    if (turn > 0) continue;
    if (!is_proper(edges, colouring)) throw std::runtime_error(name + ": not a proper colouring");
    facts = fmt::format("{} | {} | {} | {} | {}", flows.size(), edges.size(), fabric.num_leaves,
                        colouring.num_colours, routing->pieces.size());
  }
  std::ranges::sort(coloured);
  std::ranges::sort(routed);
  fmt::print("| {} | {} | {:.3f} | {:.3f} |\n", name, facts, coloured[2], routed[2]);
}

std::string said(const Fraction& load) {
  return load.denominator == 1 ? fmt::format("{}", load.numerator)
                               : fmt::format("{}/{}", load.numerator, load.denominator);
}

RoutingReport reported(const Fabric& fabric, const Flows& flows, const RoutingOptions& options) {
  const auto routing = route_flows(fabric, flows, options);
  if (!routing) throw std::runtime_error(routing.error().message);
  const auto report = report_routing(fabric, flows, *routing);
  if (!report) throw std::runtime_error(report.error().message);
  return *report;
}

void compare_rules(const std::string& name, const Flows& flows) {
  for (const std::uint32_t num_spines : {16u, 12u, 10u, 8u}) {
    const Fabric fabric{.num_leaves = 16, .hosts_per_leaf = 16, .num_spines = num_spines};
    const auto of = [&](RoutingRule rule, bool is_unequal = false) {
      return reported(fabric, flows, {.rule = rule, .has_unequal_pieces = is_unequal});
    };
    const auto cell = [](const RoutingReport& report) {
      return fmt::format("{}: {}, {}", said(report.largest_load), report.num_pieces,
                         report.queue_pairs);
    };
    std::uint64_t hashed = 0;
    constexpr std::uint64_t kSeeds = 20;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      hashed += reported(fabric, flows, {.rule = RoutingRule::Hashed, .seed = seed})
                    .largest_load.numerator;
    }
    const RoutingReport sprayed = of(RoutingRule::Sprayed);
    fmt::print("| {} | {} | {} | {} | {} | {:.2f} | {} | {} | {} | {} | {} | {} |\n", name,
               flows.size(), num_spines, sprayed.busiest_nic, said(sprayed.largest_load),
               static_cast<double>(hashed) / static_cast<double>(kSeeds),
               cell(of(RoutingRule::ByHost)), cell(of(RoutingRule::ByLeafPair)),
               cell(of(RoutingRule::Coloured)), cell(of(RoutingRule::Coloured, true)),
               cell(of(RoutingRule::ColouredAboveNic)), cell(of(RoutingRule::ColouredWhole)));
  }
}

}  // namespace

int main() try {
  fmt::print(
      "| pattern | flows | spines | busiest host | sprayed | hashed | by host | by leaf pair | "
      "coloured | unequal pieces | above the NIC | whole |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  compare_rules("all to all", all_to_all(256));
  compare_rules("halving and doubling, far step", shifted(256, 128));
  compare_rules("shift by 85", shifted(256, 85));
  compare_rules("random permutation", permutations(256, 1));
  compare_rules("ring", shifted(256, 1));
  fmt::print("\n");
  fmt::print(
      "| pattern | flows | between leaves | leaves | colours | pieces | coloured, s | routed, s |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  const Fabric small{.num_leaves = 32, .hosts_per_leaf = 32, .num_spines = 24};
  Flows flows = all_to_all(1024);
  measure("all to all, 1,024 hosts", small, flows);
  std::mt19937 random(1);
  std::ranges::shuffle(flows, random);
  measure("the same, flows in random order", small, flows);
  const Fabric large{.num_leaves = 2048, .hosts_per_leaf = 32, .num_spines = 24};
  measure("16 random permutations, 65,536 hosts", large, permutations(65536, 16));
  const Fabric wide{.num_leaves = 6250, .hosts_per_leaf = 16, .num_spines = 12};
  measure("shift by a third, 100,000 hosts", wide, shifted(100000, 33333));
  measure("all to one leaf, 100,000 hosts", wide, incast(100000, 16));
  return 0;
} catch (const std::exception& error) {
  (void)std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
