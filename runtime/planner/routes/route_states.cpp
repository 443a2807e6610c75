#include "runtime/planner/routes/route_states.h"

#include <algorithm>

namespace cinch::rt {
namespace {

struct State {
  LaneTimes lanes;
  Nanoseconds chain = 0;  // the longest way of one group through its stages; for any order alone
  std::uint32_t before = 0, route = 0;
  Nanoseconds least = 0;  // no plan behind this state is shorter
};

// What groups from one on need at least.
struct Rest {
  Nanoseconds backward = 0, exchange = 0, spread = 0;
};

std::vector<Rest> rests_of(std::span<const RouteGroup> groups) {
  std::vector<Rest> rests(groups.size() + 1);
  for (std::size_t i = groups.size(); i-- > 0;) {
    Nanoseconds exchange = INT64_MAX, spread = INT64_MAX;
    for (const Route& route : groups[i].routes) {
      exchange = std::min(exchange, route.stages.on(RouteLane::Exchange));
      spread = std::min(spread, route.stages.on(RouteLane::Spread));
    }
    rests[i] = {rests[i + 1].backward + groups[i].backward, rests[i + 1].exchange + exchange,
                rests[i + 1].spread + spread};
  }
  return rests;
}

struct Rules {
  std::size_t most_states = 0;
  bool stops_when_full = false;  // more than that: no answer; else the best are kept
  bool is_in_any_order = false, has_cpu_for_each = false;
  Nanoseconds rounding = 0, found = INT64_MAX;
};

// Each lane adds up its work from the moment that the gradient is ready.
State behind_in_any_order(const State& state, const RouteGroup& group, const RouteStages& stages,
                          bool has_cpu_for_each) {
  State next = state;
  const Nanoseconds ready = state.lanes[RouteLane::Backward] + group.backward;
  for (const auto& [lane, time, late] : stages.list()) {
    if (lane == RouteLane::Cpu && has_cpu_for_each) continue;
    next.lanes[lane] = std::max(next.lanes[lane], ready) + time;
  }
  next.lanes[RouteLane::Backward] = ready + stages.on(RouteLane::Encode);
  next.chain = std::max(state.chain, ready + stages.total());
  return next;
}

class States {
 public:
  States(std::span<const RouteGroup> groups, const Rules& rules)
      : groups_(groups), rules_(rules), rests_(rests_of(groups)) {}

  // False: more states than fit.
  bool run(bool keeps_ways) {
    states_ = {State{}};
    for (std::size_t i = 0; i < groups_.size() && !states_.empty(); ++i) {
      expand(i);
      keep_unbeaten();
      if (states_.size() > rules_.most_states) {
        if (rules_.stops_when_full) return false;
        keep_best();
      }
      if (keeps_ways) ways_.push_back(states_);
    }
    return true;
  }

  // The time of the best state, or of the plan that was found where none is shorter.
  Nanoseconds best() const {
    Nanoseconds best = rules_.found;
    for (const State& state : states_) {
      best = std::min(best, std::max(state.lanes.last(), state.chain));
    }
    return best;
  }

  RouteIndices routes_of_best() const {
    std::size_t at = 0;
    for (std::size_t k = 1; k < states_.size(); ++k) {
      if (states_[k].lanes.last() < states_[at].lanes.last()) at = k;
    }
    RouteIndices routes(groups_.size(), 0);
    for (std::size_t i = groups_.size(); i-- > 0;) {
      routes[i] = ways_[i][at].route;
      at = ways_[i][at].before;
    }
    return routes;
  }

 private:
  void expand(std::size_t i) {
    next_.clear();
    for (std::uint32_t before = 0; before < states_.size(); ++before) {
      for (std::uint32_t route = 0; route < groups_[i].routes.size(); ++route) {
        State state = behind(states_[before], i, groups_[i].routes[route].stages);
        state.before = before;
        state.route = route;
        if (state.least < rules_.found) next_.push_back(state);
      }
    }
  }

  State behind(const State& state, std::size_t i, const RouteStages& stages) const {
    State next = state;
    if (rules_.is_in_any_order) {
      next = behind_in_any_order(state, groups_[i], stages, rules_.has_cpu_for_each);
    } else {
      next.lanes = state.lanes.behind(groups_[i], stages, rules_.has_cpu_for_each);
    }
    auto& free = next.lanes.free;
    // No lane has work of the next group before that is ready, so states that differ below are one.
    if (i + 1 < groups_.size()) {
      const Nanoseconds ready = next.lanes[RouteLane::Backward] + groups_[i + 1].backward;
      for (std::size_t lane = 1; lane < kNumRouteLanes; ++lane)
        free[lane] = std::max(free[lane], ready);
      next.chain = std::max(next.chain, ready);
    }
    if (rules_.rounding > 0) {
      for (Nanoseconds& time : free) time -= time % rules_.rounding;
      next.chain -= next.chain % rules_.rounding;
    }
    const Rest& rest = rests_[i + 1];
    next.least =
        std::max({next.lanes.last(), next.chain, next.lanes[RouteLane::Backward] + rest.backward,
                  next.lanes[RouteLane::Exchange] + rest.exchange,
                  next.lanes[RouteLane::Spread] + rest.spread});
    return next;
  }

  // Leaves out each state that has another one at or below it on every lane.
  void keep_unbeaten() {
    std::sort(next_.begin(), next_.end(), [](const State& a, const State& b) {
      if (a.lanes.free != b.lanes.free) return a.lanes.free < b.lanes.free;
      return a.chain < b.chain;
    });
    states_.clear();
    for (const State& state : next_) {
      const bool is_beaten = std::any_of(states_.rbegin(), states_.rend(), [&](const State& kept) {
        if (kept.chain > state.chain) return false;
        for (std::size_t lane = 1; lane < kNumRouteLanes; ++lane) {
          if (kept.lanes.free[lane] > state.lanes.free[lane]) return false;
        }
        return true;
      });
      if (!is_beaten) states_.push_back(state);
      if (rules_.stops_when_full && states_.size() > rules_.most_states) return;
    }
  }

  void keep_best() {
    std::stable_sort(states_.begin(), states_.end(),
                     [](const State& a, const State& b) { return a.least < b.least; });
    states_.resize(rules_.most_states);
  }

  std::span<const RouteGroup> groups_;
  Rules rules_;
  std::vector<Rest> rests_;
  std::vector<State> states_, next_;
  std::vector<std::vector<State>> ways_;
};

struct Bounded {
  Nanoseconds time = 0, rounding = 0;
};

// Without rounding first, then with more and more of it, until the states fit.
Bounded bound_with(std::span<const RouteGroup> groups, Rules rules) {
  constexpr Nanoseconds kFirstPart = 20'000;  // of the plan's time
  rules.stops_when_full = true;
  while (rules.rounding <= rules.found) {
    States states(groups, rules);
    if (states.run(false)) return {states.best(), rules.rounding};
    const Nanoseconds first = std::max<Nanoseconds>(1, rules.found / kFirstPart);
    rules.rounding = rules.rounding == 0 ? first : 2 * rules.rounding;
  }
  return {0, rules.rounding};
}

}  // namespace

RouteIndices best_states(std::span<const RouteGroup> groups, std::size_t beam,
                         bool has_cpu_for_each) {
  if (groups.empty()) return {};
  States states(groups, {.most_states = beam, .has_cpu_for_each = has_cpu_for_each});
  states.run(true);
  return states.routes_of_best();
}

RouteBound bound_routes(std::span<const RouteGroup> groups, Nanoseconds found,
                        bool has_cpu_for_each, std::size_t most_states) {
  Rules rules = {.most_states = most_states, .has_cpu_for_each = has_cpu_for_each, .found = found};
  const Bounded in_order = bound_with(groups, rules);
  rules.is_in_any_order = true;
  const Bounded any = bound_with(groups, rules);
  return {in_order.time, in_order.rounding, any.time, any.rounding};
}

}  // namespace cinch::rt
