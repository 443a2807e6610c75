// The time of a step in which each group of tensors takes a route of its own: a few lanes, each of
// which serves one group at a time. Small and fast, for searches that ask thousands of times;
// PlanSimulation knows ranks and messages.
//
// The backward pass makes groups ready one by one. Encoding on the device takes as much time from
// the backward pass as it lasts, but does not hold it up while it waits for data of other ranks.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace cinch::rt {

using Nanoseconds = std::int64_t;

enum class RouteLane : std::uint8_t {
  Backward,  // the backward pass and what it gives to encoding
  Encode,    // encoding on the device, as its data comes
  Cpu,
  Gather,    // between the ranks of a machine, ahead of the machines' exchange; or to the CPUs
  Exchange,  // between machines
  Decode,    // on the device
  Spread     // between the ranks of a machine, behind; or from the CPUs
};
inline constexpr std::size_t kNumRouteLanes = 7;

/// The lane is taken for `time`. What it has made reaches the next stage `late` behind that, such
/// as the latency of an exchange; a stage with such a wait is not the last.
struct RouteStage {
  RouteLane lane = RouteLane::Exchange;
  Nanoseconds time = 0, late = 0;
  friend bool operator==(const RouteStage&, const RouteStage&) = default;
};

/// What a group needs of the lanes, one behind the other.
class RouteStages {
 public:
  static constexpr std::size_t kMost = 12;

  RouteStages() = default;
  RouteStages(std::initializer_list<RouteStage> stages);

  /// A stage of no time is left out. There are at most kMost.
  void add(RouteStage stage);
  std::span<const RouteStage> list() const { return {stages_.data(), count_}; }
  std::span<RouteStage> list() { return {stages_.data(), count_}; }
  Nanoseconds total() const;
  Nanoseconds on(RouteLane lane) const;
  /// Does the other one have these stages, each as long or longer, and perhaps more between them?
  bool is_within(const RouteStages& other) const;
  friend bool operator==(const RouteStages& a, const RouteStages& b) {
    return std::ranges::equal(a.list(), b.list());
  }

 private:
  std::array<RouteStage, kMost> stages_{};
  std::size_t count_ = 0;
};

/// A choice for a group. `id` says which: the same choice has the same id in every group.
struct Route {
  std::uint32_t id = 0;
  /// The id of the same choice with encoding and decoding on CPUs; its own id if there is none.
  std::uint32_t id_on_cpu = 0;
  RouteStages stages;
};

/// Tensors that are sent together. The first route sends f32.
struct RouteGroup {
  std::int64_t num_elems = 0;
  Nanoseconds backward = 0;  // between the group before it and this one, without any encoding
  std::vector<Route> routes;
};

/// Indices of the chosen routes, by group.
using RouteIndices = std::vector<std::uint32_t>;

enum class LaneOrder : std::uint8_t {
  Plan,      // every lane serves groups in their order
  Readiness  // a lane serves who came first, and of those the first group
};

struct TimelineRules {
  LaneOrder order = LaneOrder::Plan;
  bool has_cpu_for_each = false;  // no group waits for another one's work on CPUs
};

/// When each lane is free. Under LaneOrder::Plan these times only grow with those before.
struct LaneTimes {
  std::array<Nanoseconds, kNumRouteLanes> free{};
  friend bool operator==(const LaneTimes&, const LaneTimes&) = default;

  Nanoseconds& operator[](RouteLane lane) { return free[static_cast<std::size_t>(lane)]; }
  Nanoseconds operator[](RouteLane lane) const { return free[static_cast<std::size_t>(lane)]; }
  Nanoseconds last() const;
  /// The state behind a group that takes these stages, under LaneOrder::Plan.
  LaneTimes behind(const RouteGroup& group, const RouteStages& stages, bool has_cpu_for_each) const;
};

/// The step's time from its first gradient's own backward pass on, until every group has its
/// update.
Nanoseconds time_of(std::span<const RouteGroup> groups, std::span<const std::uint32_t> routes,
                    const TimelineRules& rules = {});

/// A plan that changes in few places: times of its changes are found from the first changed group
/// on.
class RouteTimeline {
 public:
  RouteTimeline(std::span<const RouteGroup> groups, const TimelineRules& rules,
                RouteIndices routes);

  Nanoseconds time() const { return time_; }
  const RouteIndices& routes() const { return routes_; }
  /// The time with one other route, or two; no less than the plan's own time may come out as
  /// kNotBetter.
  Nanoseconds with(std::size_t group, std::uint32_t route) const;
  Nanoseconds with(std::size_t group, std::uint32_t route, std::size_t later,
                   std::uint32_t later_route) const;
  void set(std::size_t group, std::uint32_t route);

  /// Groups whose lanes have been added up so far: a measure of work that no clock changes.
  std::uint64_t num_steps() const { return num_steps_; }

  static constexpr Nanoseconds kNotBetter = INT64_MAX;

 private:
  void update_from(std::size_t group);
  void update_rests(std::size_t end);
  bool is_too_late(const LaneTimes& lanes, std::size_t next) const;
  Nanoseconds resumed(std::size_t group, std::uint32_t route, std::size_t later,
                      std::uint32_t later_route) const;

  std::span<const RouteGroup> groups_;
  TimelineRules rules_;
  RouteIndices routes_;
  // By group, and one behind the last, for LaneOrder::Plan alone: the lanes before it, and the work
  // of each from it on.
  std::vector<LaneTimes> before_, rest_;
  Nanoseconds time_ = 0;
  mutable std::uint64_t num_steps_ = 0;
};

}  // namespace cinch::rt
