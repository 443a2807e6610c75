#include "runtime/simulator/pair_routes.h"

#include <set>

namespace cinch::rt {
namespace {

Result<Fabric> fabric_of(const Topology& topology, std::uint32_t world) {
  const Topology::Shape& shape = topology.shape();
  if (shape.machines.size() > 1 || shape.leaves_per_pod > 0) {
    return invalid("routing is for one site of leaves and spines");
  }
  Fabric fabric;
  fabric.num_leaves = topology.leaf_of(world - 1) + 1;
  fabric.hosts_per_leaf = topology.ranks_of_leaf(0).second;
  fabric.num_spines = shape.spines;
  fabric.host_speed = static_cast<std::uint64_t>(shape.nic.bytes_per_second);
  fabric.link_speed = static_cast<std::uint64_t>(shape.uplink.bytes_per_second);
  for (std::uint32_t leaf = 0; leaf < fabric.num_leaves; ++leaf) {
    const std::vector<double> speeds = topology.speeds_of_leaf(leaf);
    for (std::uint32_t spine = 0; spine < shape.spines; ++spine) {
      if (speeds[std::size_t{2} * spine] == 0) fabric.down_links.push_back({leaf, spine});
    }
  }
  return fabric;
}

std::vector<Flow> flows_of(const Topology& topology, const Plan& plan) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  bool has_collectives = false;
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    for (const Task& task : plan.ranks[rank].tasks) {
      if (task.kind != TaskKind::Exchange || task.exchange == ExchangeKind::Receive) continue;
      has_collectives |= task.exchange != ExchangeKind::Send;
      if (task.exchange == ExchangeKind::Send) pairs.emplace(rank, task.peer);
    }
  }
  for (std::uint32_t from = 0; from < plan.world() && has_collectives; ++from) {
    for (std::uint32_t to = 0; to < plan.world(); ++to) pairs.emplace(from, to);
  }
  std::vector<Flow> flows;
  for (const auto& [from, to] : pairs) {
    if (topology.machine_of(from) != topology.machine_of(to)) flows.push_back({from, to, 1});
  }
  return flows;
}

}  // namespace

Result<PairRoutes> route_pairs(const Topology& topology, const Plan& plan,
                               const RoutingOptions& options) {
  const Fabric fabric = TRY(fabric_of(topology, plan.world()));
  const std::vector<Flow> flows = flows_of(topology, plan);
  PairRoutes made;
  if (flows.empty()) return made;
  const Routing routing = TRY(route_flows(fabric, flows, options));
  for (const FlowPiece& piece : routing.pieces) {
    if (piece.spine == kWithinLeaf) continue;
    const Flow& flow = flows[piece.flow];
    const double part = static_cast<double>(piece.end - piece.begin) / piece.parts;
    made.shares[{flow.source, flow.destination}].push_back({piece.spine, part});
  }
  made.report = TRY(report_routing(fabric, flows, routing));
  return made;
}

}  // namespace cinch::rt
