// Fixed ways between the leaves of a topology for the pairs of ranks that a plan sends between.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/fabric/route_flows.h"
#include "runtime/plan/plan.h"
#include "runtime/simulator/topology.h"

namespace cinch::rt {

struct PairRoutes {
  /// By sender and receiver under different leaves.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<SpineShare>> shares;
  RoutingReport report;  // of a byte on each pair
};

/// Every pair of ranks that the plan has a message or a collective for is a flow of equal bytes,
/// and keeps its pieces throughout. The plan has the tasks of all ranks. Errors: InvalidArgument
/// (several sites, pods), those of route_flows.
Result<PairRoutes> route_pairs(const Topology& topology, const Plan& plan,
                               const RoutingOptions& options);

}  // namespace cinch::rt
