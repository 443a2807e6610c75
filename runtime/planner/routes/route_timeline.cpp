#include "runtime/planner/routes/route_timeline.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

namespace cinch::rt {

RouteStages::RouteStages(std::initializer_list<RouteStage> stages) {
  for (const RouteStage& stage : stages) add(stage);
}

void RouteStages::add(RouteStage stage) {
  if (stage.time > 0 || stage.late > 0) stages_.at(count_++) = stage;
}

Nanoseconds RouteStages::total() const {
  Nanoseconds sum = 0;
  for (const RouteStage& stage : list()) sum += stage.time + stage.late;
  return sum;
}

Nanoseconds RouteStages::on(RouteLane lane) const {
  Nanoseconds sum = 0;
  for (const RouteStage& stage : list()) sum += stage.lane == lane ? stage.time : 0;
  return sum;
}

bool RouteStages::is_within(const RouteStages& other) const {
  std::size_t found = 0;
  for (const RouteStage& stage : other.list()) {
    if (found == count_) break;
    const RouteStage& own = stages_[found];
    if (own.lane == stage.lane && own.time <= stage.time && own.late <= stage.late) ++found;
  }
  return found == count_;
}

Nanoseconds LaneTimes::last() const {
  return *std::max_element(free.begin(), free.end());
}

LaneTimes LaneTimes::behind(const RouteGroup& group, const RouteStages& stages,
                            bool has_cpu_for_each) const {
  LaneTimes next = *this;
  const Nanoseconds begun = next[RouteLane::Backward] + group.backward;
  next[RouteLane::Backward] = begun;
  Nanoseconds ready = begun;
  for (const auto& [lane, time, late] : stages.list()) {
    Nanoseconds& free = next[lane];
    const bool waits = lane != RouteLane::Cpu || !has_cpu_for_each;
    ready = (waits ? std::max(free, ready) : ready) + time;
    free = std::max(free, ready);
    ready += late;
    if (lane == RouteLane::Encode) next[RouteLane::Backward] += time;
  }
  return next;
}

namespace {

Nanoseconds time_by_readiness(std::span<const RouteGroup> groups,
                              std::span<const std::uint32_t> routes, bool has_cpu_for_each) {
  using Arrival = std::tuple<Nanoseconds, std::size_t, std::size_t>;  // time, group, stage
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  LaneTimes lanes;
  Nanoseconds backward = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    backward += groups[i].backward;
    arrivals.emplace(backward, i, 0);
    backward += groups[i].routes[routes[i]].stages.on(RouteLane::Encode);
  }
  Nanoseconds last = backward;
  while (!arrivals.empty()) {
    const auto [time, group, number] = arrivals.top();
    arrivals.pop();
    last = std::max(last, time);
    const auto stages = groups[group].routes[routes[group]].stages.list();
    if (number == stages.size()) continue;
    const RouteStage& stage = stages[number];
    const bool waits = stage.lane != RouteLane::Cpu || !has_cpu_for_each;
    const Nanoseconds end = (waits ? std::max(lanes[stage.lane], time) : time) + stage.time;
    lanes[stage.lane] = end;
    arrivals.emplace(end + stage.late, group, number + 1);
  }
  return last;
}

}  // namespace

Nanoseconds time_of(std::span<const RouteGroup> groups, std::span<const std::uint32_t> routes,
                    const TimelineRules& rules) {
  if (rules.order == LaneOrder::Readiness) {
    return time_by_readiness(groups, routes, rules.has_cpu_for_each);
  }
  LaneTimes lanes;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    lanes = lanes.behind(groups[i], groups[i].routes[routes[i]].stages, rules.has_cpu_for_each);
  }
  return lanes.last();
}

RouteTimeline::RouteTimeline(std::span<const RouteGroup> groups, const TimelineRules& rules,
                             RouteIndices routes)
    : groups_(groups),
      rules_(rules),
      routes_(std::move(routes)),
      before_(rules.order == LaneOrder::Plan ? groups.size() + 1 : 0),
      rest_(before_.size()) {
  update_from(0);
  update_rests(groups.size());
}

void RouteTimeline::update_rests(std::size_t end) {
  if (rules_.order == LaneOrder::Readiness) return;
  for (std::size_t i = end; i-- > 0;) {
    LaneTimes& rest = rest_[i] = rest_[i + 1];
    rest[RouteLane::Backward] += groups_[i].backward;
    for (const auto& [lane, time, late] : groups_[i].routes[routes_[i]].stages.list()) {
      if (lane == RouteLane::Cpu && rules_.has_cpu_for_each) continue;
      rest[lane] += time;
      if (lane == RouteLane::Encode) rest[RouteLane::Backward] += time;
    }
  }
}

// Does some lane end too late, even without any waiting from the group `next` on?
bool RouteTimeline::is_too_late(const LaneTimes& lanes, std::size_t next) const {
  for (std::size_t lane = 0; lane < kNumRouteLanes; ++lane) {
    if (lanes.free[lane] + rest_[next].free[lane] >= time_) return true;
  }
  return false;
}

void RouteTimeline::update_from(std::size_t group) {
  num_steps_ += groups_.size() - group;
  if (rules_.order == LaneOrder::Readiness) {
    time_ = time_of(groups_, routes_, rules_);
    return;
  }
  for (std::size_t i = group; i < groups_.size(); ++i) {
    const RouteStages& stages = groups_[i].routes[routes_[i]].stages;
    before_[i + 1] = before_[i].behind(groups_[i], stages, rules_.has_cpu_for_each);
  }
  time_ = before_.back().last();
}

Nanoseconds RouteTimeline::resumed(std::size_t group, std::uint32_t route, std::size_t later,
                                   std::uint32_t later_route) const {
  if (rules_.order == LaneOrder::Readiness) {
    RouteIndices changed = routes_;
    changed[group] = route;
    if (later < changed.size()) changed[later] = later_route;
    num_steps_ += groups_.size();
    return time_of(groups_, changed, rules_);
  }
  LaneTimes lanes = before_[group];
  for (std::size_t i = group; i < groups_.size(); ++i) {
    const bool is_changed = i == group || i == later;
    const bool is_last_change = later >= groups_.size() || i >= later;
    // Most changes reach the lane between machines, so it tells first.
    const bool may_meet =
        lanes[RouteLane::Exchange] == before_[i][RouteLane::Exchange] && !is_changed;
    if (may_meet && is_last_change && lanes == before_[i]) return time_;
    const std::uint32_t taken = i == group ? route : i == later ? later_route : routes_[i];
    lanes = lanes.behind(groups_[i], groups_[i].routes[taken].stages, rules_.has_cpu_for_each);
    ++num_steps_;
    if (is_last_change && is_too_late(lanes, i + 1)) return kNotBetter;
  }
  return lanes.last();
}

Nanoseconds RouteTimeline::with(std::size_t group, std::uint32_t route) const {
  return resumed(group, route, groups_.size(), 0);
}

Nanoseconds RouteTimeline::with(std::size_t group, std::uint32_t route, std::size_t later,
                                std::uint32_t later_route) const {
  return resumed(group, route, later, later_route);
}

void RouteTimeline::set(std::size_t group, std::uint32_t route) {
  routes_[group] = route;
  update_from(group);
  update_rests(group + 1);
}

}  // namespace cinch::rt
