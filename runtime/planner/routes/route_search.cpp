#include "runtime/planner/routes/route_search.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "runtime/planner/routes/route_states.h"

namespace cinch::rt {

std::vector<RouteGroup> join_small(std::span<const ProfiledTensor> tensors,
                                   std::int64_t least_elems) {
  std::vector<RouteGroup> groups;
  bool is_open = false;
  for (const ProfiledTensor& tensor : tensors) {
    if (!is_open) groups.emplace_back();
    groups.back().num_elems += tensor.num_elems;
    groups.back().backward += tensor.backward;
    is_open = groups.back().num_elems < least_elems;
  }
  return groups;
}

namespace {

bool is_beaten(std::span<const Route> routes, std::size_t route) {
  for (std::size_t other = 0; other < routes.size(); ++other) {
    if (other == route || !routes[other].stages.is_within(routes[route].stages)) continue;
    if (routes[other].stages != routes[route].stages || other < route) return true;
  }
  return false;
}

// By what a route's id is found in a group; its size: there is none.
std::size_t place_of(const RouteGroup& group, std::uint32_t id) {
  const auto found = std::find_if(group.routes.begin(), group.routes.end(),
                                  [id](const Route& route) { return route.id == id; });
  return static_cast<std::size_t>(found - group.routes.begin());
}

// The place of a route on CPUs that stands for this one; its size: there is none.
std::size_t place_on_cpu(const RouteGroup& group, std::uint32_t route) {
  const Route& own = group.routes[route];
  return own.id_on_cpu == own.id ? group.routes.size() : place_of(group, own.id_on_cpu);
}

std::vector<std::uint32_t> ids_of(std::span<const RouteGroup> groups) {
  std::vector<std::uint32_t> ids;
  for (const RouteGroup& group : groups) {
    for (const Route& route : group.routes) ids.push_back(route.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

constexpr std::size_t kMostSizes = 256;

// The sizes from which on groups are compressed: all that there are, or evenly chosen ones.
std::vector<std::int64_t> sizes_of(std::span<const RouteGroup> groups) {
  std::vector<std::int64_t> sizes;
  for (const RouteGroup& group : groups) sizes.push_back(group.num_elems);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() <= kMostSizes) return sizes;
  std::vector<std::int64_t> chosen;
  chosen.reserve(kMostSizes);
  for (std::size_t i = 0; i < kMostSizes; ++i) {
    chosen.push_back(sizes[i * (sizes.size() - 1) / (kMostSizes - 1)]);
  }
  return chosen;
}

// Work that is left, in groups whose lanes are added up.
class Budget {
 public:
  explicit Budget(std::uint64_t steps) : left_(steps) {}
  bool take(std::uint64_t steps) {
    if (steps > left_) return false;
    left_ -= steps;
    return true;
  }

 private:
  std::uint64_t left_;
};

RoutePlan planned(std::span<const RouteGroup> groups, const RouteSearch& search,
                  RouteIndices routes, std::string start) {
  const Nanoseconds time = time_of(groups, routes, search.rules);
  return {std::move(routes), time, std::move(start)};
}

RoutePlan cheapest_plan(std::span<const RouteGroup> groups, const RouteSearch& search) {
  RouteIndices routes;
  for (const RouteGroup& group : groups) {
    const auto best = std::min_element(
        group.routes.begin(), group.routes.end(),
        [](const Route& a, const Route& b) { return a.stages.total() < b.stages.total(); });
    routes.push_back(static_cast<std::uint32_t>(best - group.routes.begin()));
  }
  return planned(groups, search, std::move(routes), "the cheapest route of each");
}

RouteIndices from_size_on(std::span<const RouteGroup> groups, std::uint32_t id, std::int64_t size) {
  RouteIndices routes(groups.size(), 0);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t place = place_of(groups[i], id);
    const bool is_taken = groups[i].num_elems >= size && place < groups[i].routes.size();
    if (is_taken) routes[i] = static_cast<std::uint32_t>(place);
  }
  return routes;
}

// The best route for all groups, and for all from a size on.
std::pair<RoutePlan, RoutePlan> best_of_one_route(std::span<const RouteGroup> groups,
                                                  const RouteSearch& search, Budget& budget) {
  RoutePlan uniform = planned(groups, search, RouteIndices(groups.size(), 0), "f32 for all");
  RoutePlan threshold = uniform;
  const std::vector<std::int64_t> sizes = sizes_of(groups);
  for (const std::uint32_t id : ids_of(groups)) {
    for (const std::int64_t size : sizes) {
      if (!budget.take(groups.size())) return {uniform, threshold};
      RoutePlan plan =
          planned(groups, search, from_size_on(groups, id, size), "one route from a size on");
      if (size == sizes.front() && plan.time < uniform.time) {
        uniform = {plan.routes, plan.time, "one route for all"};
      }
      if (plan.time < threshold.time) threshold = std::move(plan);
    }
  }
  return {std::move(uniform), std::move(threshold)};
}

// Changes one group at a time, and, where none helps, two that lie close, until nothing does.
class Polish {
 public:
  Polish(std::span<const RouteGroup> groups, const RouteSearch& search, const RoutePlan& plan,
         Budget& budget)
      : groups_(groups),
        window_(search.window),
        timeline_(groups, search.rules, plan.routes),
        budget_(budget) {}

  void run() {
    while (change_one() || change_two()) {
    }
  }
  const RouteTimeline& timeline() const { return timeline_; }

 private:
  // False: no work may be done any more.
  bool spend() {
    const std::uint64_t before = std::exchange(spent_, timeline_.num_steps());
    return budget_.take(spent_ - before);
  }

  bool change_one() {
    bool has_changed = false;
    for (std::size_t i = groups_.size(); i-- > 0;) {
      const std::uint32_t own = timeline_.routes()[i];
      Nanoseconds best = timeline_.time();
      std::uint32_t chosen = own;
      for (std::uint32_t route = 0; route < groups_[i].routes.size(); ++route) {
        const Nanoseconds time = route == own ? best : timeline_.with(i, route);
        if (time < best) std::tie(best, chosen) = std::pair(time, route);
      }
      if (!spend()) return false;
      if (chosen == own) continue;
      timeline_.set(i, chosen);
      has_changed = true;
    }
    return has_changed;
  }

  bool change_two() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      for (std::size_t j = i + 1; j < std::min(groups_.size(), i + 1 + window_); ++j) {
        const bool has_changed = change_pair(i, j);
        if (!spend()) return false;
        if (has_changed) return true;
      }
    }
    return false;
  }

  bool change_pair(std::size_t i, std::size_t j) {
    for (std::uint32_t first = 0; first < groups_[i].routes.size(); ++first) {
      for (std::uint32_t second = 0; second < groups_[j].routes.size(); ++second) {
        if (first == timeline_.routes()[i] || second == timeline_.routes()[j]) continue;
        if (timeline_.with(i, first, j, second) >= timeline_.time()) continue;
        timeline_.set(i, first);
        timeline_.set(j, second);
        return true;
      }
    }
    return false;
  }

  std::span<const RouteGroup> groups_;
  std::size_t window_;
  RouteTimeline timeline_;
  Budget& budget_;
  std::uint64_t spent_ = 0;
};

}  // namespace

std::size_t prune_routes(std::vector<RouteGroup>& groups) {
  std::size_t num_gone = 0;
  for (RouteGroup& group : groups) {
    std::vector<Route> kept;
    for (std::size_t i = 0; i < group.routes.size(); ++i) {
      if (i == 0 || !is_beaten(group.routes, i)) kept.push_back(group.routes[i]);
    }
    num_gone += group.routes.size() - kept.size();
    group.routes = std::move(kept);
  }
  return num_gone;
}

RouteIndices espresso_on_device(std::span<const RouteGroup> groups, const TimelineRules& rules) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(groups[a].num_elems, a) > std::pair(groups[b].num_elems, b);
  });
  RouteTimeline timeline(groups, rules, RouteIndices(groups.size(), 0));
  for (const std::size_t i : order) {
    Nanoseconds best = timeline.time();
    std::uint32_t chosen = 0;
    for (std::uint32_t route = 1; route < groups[i].routes.size(); ++route) {
      if (groups[i].routes[route].stages.on(RouteLane::Cpu) > 0) continue;
      const Nanoseconds time = timeline.with(i, route);
      if (time < best) std::tie(best, chosen) = std::pair(time, route);
    }
    if (chosen != 0) timeline.set(i, chosen);
  }
  return timeline.routes();
}

RouteIndices espresso_offload(std::span<const RouteGroup> groups, const TimelineRules& rules,
                              RouteIndices routes) {
  std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<std::size_t>> sets;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (place_on_cpu(groups[i], routes[i]) == groups[i].routes.size()) continue;
    sets[{groups[i].num_elems, groups[i].routes[routes[i]].id}].push_back(i);
  }
  RouteIndices best = routes;
  Nanoseconds time = time_of(groups, best, rules);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const auto& [key, set] : sets) {
      RouteIndices tried = best;
      for (const std::size_t i : set) tried[i] = routes[i];
      for (std::size_t count = 0; count <= set.size(); ++count) {
        if (count > 0) {
          const std::size_t i = set[count - 1];
          tried[i] = static_cast<std::uint32_t>(place_on_cpu(groups[i], routes[i]));
        }
        const Nanoseconds found = time_of(groups, tried, rules);
        if (found >= time) continue;
        time = found;
        best = tried;
        has_changed = true;
      }
    }
  }
  return best;
}

RouteStarts route_starts(std::span<const RouteGroup> groups, const RouteSearch& search) {
  Budget budget(search.most_steps / 2);
  RouteStarts starts;
  starts.dense = planned(groups, search, RouteIndices(groups.size(), 0), "f32 for all");
  starts.cheapest = cheapest_plan(groups, search);
  std::tie(starts.uniform, starts.threshold) = best_of_one_route(groups, search, budget);
  std::size_t most_routes = 0;
  for (const RouteGroup& group : groups) most_routes = std::max(most_routes, group.routes.size());
  const std::uint64_t changes = groups.size() * groups.size() * most_routes;
  starts.espresso = starts.dense;
  if (budget.take(changes + 4 * groups.size() * groups.size())) {
    starts.espresso =
        planned(groups, search,
                espresso_offload(groups, search.rules, espresso_on_device(groups, search.rules)),
                "Espresso's algorithms");
  }
  starts.beam =
      planned(groups, search, best_states(groups, search.beam, search.rules.has_cpu_for_each),
              "a beam of states");
  return starts;
}

RoutePlan search_routes(std::span<const RouteGroup> groups, const RouteSearch& search) {
  RouteStarts starts = route_starts(groups, search);
  std::vector<RoutePlan> plans = {std::move(starts.dense),    std::move(starts.cheapest),
                                  std::move(starts.uniform),  std::move(starts.threshold),
                                  std::move(starts.espresso), std::move(starts.beam)};
  std::stable_sort(plans.begin(), plans.end(),
                   [](const RoutePlan& a, const RoutePlan& b) { return a.time < b.time; });
  const auto is_same = [](const RoutePlan& a, const RoutePlan& b) { return a.routes == b.routes; };
  plans.erase(std::unique(plans.begin(), plans.end(), is_same), plans.end());
  Budget budget(search.most_steps / 2);
  RoutePlan best = plans.front();
  Nanoseconds backward = 0;  // which no plan is shorter than
  for (const RouteGroup& group : groups) backward += group.backward;
  for (std::size_t i = 0; i < std::min(plans.size(), search.num_polished); ++i) {
    if (best.time <= backward) break;
    Polish polish(groups, search, plans[i], budget);
    polish.run();
    const RouteTimeline& found = polish.timeline();
    if (found.time() < best.time) best = {found.routes(), found.time(), plans[i].start};
  }
  return best;
}

}  // namespace cinch::rt
