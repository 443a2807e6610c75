// Chooses a route for each group of tensors: a few good starts, and changes of one or two groups
// that shorten the step. Deterministic; no start is better than what comes out.
#pragma once
#include <string>
#include <vector>

#include "runtime/planner/routes/route_timeline.h"

namespace cinch::rt {

/// Joins each run of tensors with the next one until there are `least_elems` elements, since a
/// message costs more than these take. The last group may have fewer. Tensors are given as elements
/// and the backward time before them; groups have no routes yet.
struct ProfiledTensor {
  std::int64_t num_elems = 0;
  Nanoseconds backward = 0;
};
std::vector<RouteGroup> join_small(std::span<const ProfiledTensor> tensors,
                                   std::int64_t least_elems);

/// Leaves out routes that have all stages of another one, each as long or longer. The first route
/// stays. Exact under LaneOrder::Plan, where more of a lane's time never ends earlier. Returns how
/// many went.
std::size_t prune_routes(std::vector<RouteGroup>& groups);

struct RouteSearch {
  TimelineRules rules;
  std::size_t beam = 30;         // states that are kept behind each group
  std::size_t num_polished = 3;  // of the best starts
  std::size_t window = 4;        // groups that are changed in pairs lie so close
  /// Groups whose lanes may be added up in all. A search that comes here ends with what it has.
  std::uint64_t most_steps = UINT64_C(200'000'000);
};

struct RoutePlan {
  RouteIndices routes;
  Nanoseconds time = 0;
  std::string start;  // the start that it came from
};

/// Plans to compare with, each of which `search_routes` starts from.
struct RouteStarts {
  RoutePlan dense;      // f32 for all
  RoutePlan cheapest;   // by group: the least time of all lanes together, as SeCoPa decides
  RoutePlan uniform;    // the best route for all groups
  RoutePlan threshold;  // the best route for all groups from the best size on
  RoutePlan espresso;   // Espresso's Algorithms 1 and 2 (EuroSys 2023), without its bubbles
  RoutePlan beam;       // group by group, with the best states
};
RouteStarts route_starts(std::span<const RouteGroup> groups, const RouteSearch& search = {});

/// Groups have routes, of which the first sends f32. All routes with the same id are the same
/// choice.
RoutePlan search_routes(std::span<const RouteGroup> groups, const RouteSearch& search = {});

/// Espresso's Algorithm 1: routes on the device, for larger groups first, and of equal ones for the
/// last. It prunes nothing by bubbles, which compression makes itself.
RouteIndices espresso_on_device(std::span<const RouteGroup> groups, const TimelineRules& rules);
/// Algorithm 2: of each set of groups with equal sizes and routes, the first few go to CPUs; sets
/// take turns until nothing is shorter.
RouteIndices espresso_offload(std::span<const RouteGroup> groups, const TimelineRules& rules,
                              RouteIndices routes);

}  // namespace cinch::rt
