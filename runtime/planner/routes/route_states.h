// Goes through groups in order and keeps the states of the lanes that another one does not beat on
// every lane: the best plans, or, with states rounded down, a bound for all plans.
#pragma once
#include "runtime/planner/routes/route_timeline.h"

namespace cinch::rt {

/// Routes of the best plan that a beam of so many states finds, under LaneOrder::Plan.
RouteIndices best_states(std::span<const RouteGroup> groups, std::size_t beam,
                         bool has_cpu_for_each = false);

/// What no choice of routes can be shorter than.
struct RouteBound {
  /// Where lanes serve groups in their order, and the rounding of its states.
  Nanoseconds in_order = 0, rounding = 0;
  /// Where they serve them in any order: each lane adds up its work from the moment that its
  /// gradient is ready. Weaker.
  Nanoseconds in_any_order = 0, any_rounding = 0;
};

/// `found`: the time of a plan; no bound is above it. States are rounded down to multiples of a
/// time that grows until at most `most_states` are left behind each group.
RouteBound bound_routes(std::span<const RouteGroup> groups, Nanoseconds found,
                        bool has_cpu_for_each = false, std::size_t most_states = 4000);

}  // namespace cinch::rt
