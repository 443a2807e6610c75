// Routes: a timeline, a search that no start beats, bounds that no plan is below. Against all
// combinations of small cases, and what papers print.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "runtime/planner/routes/route_search.h"
#include "runtime/planner/routes/route_states.h"
#include "runtime/planner/routes/secopa.h"

namespace cinch::rt {
namespace {

constexpr TimelineRules kAllRules[] = {{LaneOrder::Plan, false},
                                       {LaneOrder::Plan, true},
                                       {LaneOrder::Readiness, false},
                                       {LaneOrder::Readiness, true}};

// f32, compressed on the device, compressed on CPUs; transfers alone, without decoding.
RouteGroup transfer(Nanoseconds backward, Nanoseconds raw, Nanoseconds compressed,
                    Nanoseconds on_device, Nanoseconds on_cpu) {
  return {raw,
          backward,
          {{0, 0, {{RouteLane::Exchange, raw}}},
           {1, 2, {{RouteLane::Encode, on_device}, {RouteLane::Exchange, compressed}}},
           {2, 2, {{RouteLane::Cpu, on_cpu}, {RouteLane::Exchange, compressed}}}}};
}

// Calls `visit` with every choice of routes.
template <class Visit>
void for_all_choices(std::span<const RouteGroup> groups, const Visit& visit) {
  RouteIndices routes(groups.size(), 0);
  for (std::size_t at = 0; at < groups.size();) {
    visit(routes);
    for (at = 0; at < groups.size() && ++routes[at] == groups[at].routes.size(); ++at) {
      routes[at] = 0;
    }
  }
}

Nanoseconds best_of_all(std::span<const RouteGroup> groups, const TimelineRules& rules = {}) {
  Nanoseconds best = INT64_MAX;
  for_all_choices(groups, [&](const RouteIndices& routes) {
    best = std::min(best, time_of(groups, routes, rules));
  });
  return best;
}

// Sizes are numbers of `transfer`, so that equal tensors form one set.
void expect_times(const std::vector<RouteGroup>& groups, const TimelineRules& rules,
                  Nanoseconds dense, Nanoseconds first, Nanoseconds second, Nanoseconds best) {
  EXPECT_EQ(time_of(groups, RouteIndices(groups.size(), 0), rules), dense);
  const RouteIndices on_device = espresso_on_device(groups, rules);
  EXPECT_EQ(time_of(groups, on_device, rules), first);
  EXPECT_EQ(time_of(groups, espresso_offload(groups, rules, on_device), rules), second);
  EXPECT_EQ(best_of_all(groups, rules), best);
  EXPECT_EQ(search_routes(groups, {.rules = rules}).time, best);
}

TEST(Routes, EspressosAlgorithmsMissOffloadingTheSecondOfTwoEqualTensors) {
  const std::vector<RouteGroup> groups = {transfer(0, 5, 3, 1, 2), transfer(1, 5, 3, 1, 2),
                                          transfer(4, 3, 1, 1, 2)};
  for (const TimelineRules& rules : kAllRules) expect_times(groups, rules, 13, 9, 9, 8);
  const RoutePlan plan = search_routes(groups);
  EXPECT_EQ(plan.routes[1], 2u);  // the second tensor alone on CPUs
  EXPECT_EQ(std::count(plan.routes.begin(), plan.routes.end(), 2u), 1);
}

TEST(Routes, TheSameWithSmallerNumbersInOrderOfIndex) {
  const std::vector<RouteGroup> groups = {transfer(0, 4, 2, 1, 2), transfer(0, 4, 2, 1, 2),
                                          transfer(3, 3, 1, 1, 2)};
  expect_times(groups, {}, 11, 7, 7, 6);
}

TEST(Routes, NothingIsCompressedOverANetworkThatTakesNoTime) {
  const std::vector<RouteGroup> groups = {transfer(5, 0, 0, 3, 4), transfer(5, 0, 0, 3, 4)};
  EXPECT_EQ(search_routes(groups).routes, RouteIndices(2, 0));
  EXPECT_EQ(search_routes(groups).time, 10);
}

TEST(Routes, FreeCompressionMeetsTheBound) {
  std::vector<RouteGroup> groups;
  for (int i = 0; i < 40; ++i) groups.push_back(transfer(i % 7, 50 + i % 5, 2 + i % 3, 0, 0));
  const RoutePlan plan = search_routes(groups);
  const RouteBound bound = bound_routes(groups, plan.time);
  EXPECT_EQ(bound.in_order, plan.time);
  EXPECT_LE(bound.in_any_order, plan.time);
}

// ---- random cases ----

class Random {
 public:
  explicit Random(std::uint64_t seed) : from_(seed) {}
  Nanoseconds below(Nanoseconds end) {
    return static_cast<Nanoseconds>(from_() % static_cast<std::uint64_t>(end));
  }

 private:
  std::mt19937_64 from_;
};

RouteGroup any_group(Random& random, std::size_t num_routes) {
  RouteGroup group{1 + random.below(3), random.below(8), {}};
  group.routes.push_back(
      {0, 0, {{RouteLane::Gather, random.below(4)}, {RouteLane::Exchange, 4 + random.below(12)}}});
  for (std::uint32_t id = 1; id < num_routes; ++id) {
    const bool is_on_cpu = id % 2 == 0;
    RouteStages stages;
    stages.add({RouteLane::Gather, random.below(4)});
    stages.add({is_on_cpu ? RouteLane::Cpu : RouteLane::Encode, 1 + random.below(5)});
    stages.add({RouteLane::Exchange, 1 + random.below(6)});
    stages.add({is_on_cpu ? RouteLane::Cpu : RouteLane::Decode, random.below(3)});
    // Some have a second exchange, of what others decode.
    if (random.below(3) == 0) stages.add({RouteLane::Exchange, 1 + random.below(3)});
    stages.add({RouteLane::Spread, random.below(4)});
    group.routes.push_back({id, is_on_cpu ? id : id + 1, stages});
  }
  if (num_routes % 2 == 0) group.routes.back().id_on_cpu = group.routes.back().id;
  return group;
}

std::vector<RouteGroup> any_groups(Random& random, std::size_t most, std::size_t num_routes) {
  std::vector<RouteGroup> groups(
      1 + static_cast<std::size_t>(random.below(static_cast<Nanoseconds>(most))));
  for (RouteGroup& group : groups) group = any_group(random, num_routes);
  return groups;
}

TEST(Routes, ChangesAreFoundAsByAWholeTimeline) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const auto groups = any_groups(random, 8, 4);
    const auto any = [&](std::size_t count) {
      return static_cast<std::size_t>(random.below(static_cast<Nanoseconds>(count)));
    };
    const TimelineRules& rules = kAllRules[any(4)];
    RouteIndices routes(groups.size());
    for (auto& route : routes) route = static_cast<std::uint32_t>(any(4));
    const RouteTimeline timeline(groups, rules, routes);
    ASSERT_EQ(timeline.time(), time_of(groups, routes, rules));
    const std::size_t first = any(groups.size());
    const std::size_t second = first + 1 + any(3);
    RouteIndices changed = routes;
    changed[first] = static_cast<std::uint32_t>(any(4));
    const auto check = [&](Nanoseconds found) {
      const Nanoseconds whole = time_of(groups, changed, rules);
      if (found == RouteTimeline::kNotBetter) {
        ASSERT_GE(whole, timeline.time());
      } else {
        ASSERT_EQ(found, whole);
      }
    };
    check(timeline.with(first, changed[first]));
    if (second >= groups.size()) continue;
    changed[second] = static_cast<std::uint32_t>(any(4));
    check(timeline.with(first, changed[first], second, changed[second]));
  }
}

TEST(Routes, NoTaskThatLastsLongerShortensAStepInPlanOrder) {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    auto groups = any_groups(random, 6, 3);
    RouteIndices routes(groups.size());
    for (auto& route : routes) route = static_cast<std::uint32_t>(random.below(3));
    const Nanoseconds before = time_of(groups, routes);
    const auto at = static_cast<std::size_t>(random.below(static_cast<Nanoseconds>(groups.size())));
    const auto stages = groups[at].routes[routes[at]].stages.list();
    const auto longer = random.below(static_cast<Nanoseconds>(stages.size()) + 1);
    const bool is_backward = longer == static_cast<Nanoseconds>(stages.size());
    Nanoseconds& time =
        is_backward ? groups[at].backward : stages[static_cast<std::size_t>(longer)].time;
    time += 1 + random.below(4);
    ASSERT_GE(time_of(groups, routes), before);
  }
}

TEST(Routes, PlansAreNoWorseThanAnyStartAndNoBetterThanTheBounds) {
  Random random(3);
  Nanoseconds found = 0, least = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto groups = any_groups(random, 6, 3);
    const Nanoseconds best = best_of_all(groups);
    const RoutePlan plan = search_routes(groups);
    ASSERT_EQ(plan.time, time_of(groups, plan.routes));
    const RouteStarts starts = route_starts(groups);
    for (const RoutePlan* start : {&starts.dense, &starts.cheapest, &starts.uniform,
                                   &starts.threshold, &starts.espresso, &starts.beam}) {
      ASSERT_EQ(start->time, time_of(groups, start->routes));
      ASSERT_LE(plan.time, start->time);
    }
    const RouteBound bound = bound_routes(groups, plan.time);
    ASSERT_EQ(bound.in_order, best);  // without rounding the states are exact
    ASSERT_LE(bound.in_any_order, best);
    const RouteBound coarse = bound_routes(groups, plan.time, false, 2);
    ASSERT_LE(coarse.in_order, best);
    ASSERT_LE(coarse.in_any_order, best);
    found += plan.time;
    least += best;
  }
  EXPECT_LT(static_cast<double>(found), 1.002 * static_cast<double>(least));
}

// Exchanges in a given order; every other lane serves who comes first. Encodes, exchanges and
// decodes alone.
Nanoseconds time_in_order(std::span<const RouteGroup> groups, const RouteIndices& routes,
                          std::span<const std::size_t> order) {
  std::vector<Nanoseconds> ready(groups.size());
  LaneTimes lanes;
  const auto stages_of = [&](std::size_t i) -> const RouteStages& {
    return groups[i].routes[routes[i]].stages;
  };
  const auto take = [&](std::size_t i, RouteLane lane) {
    const Nanoseconds time = stages_of(i).on(lane);
    if (time > 0) ready[i] = lanes[lane] = std::max(lanes[lane], ready[i]) + time;
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    ready[i] = lanes[RouteLane::Backward] += groups[i].backward;
    lanes[RouteLane::Backward] += stages_of(i).on(RouteLane::Encode);
    take(i, RouteLane::Encode);
    take(i, RouteLane::Cpu);
  }
  for (const std::size_t i : order) {
    take(i, RouteLane::Exchange);
    take(i, RouteLane::Decode);
  }
  return lanes.last();
}

TEST(Routes, TheWeakerBoundHoldsForEveryOrderOfExchanges) {
  Random random(4);
  for (int i = 0; i < 1000; ++i) {
    std::vector<RouteGroup> groups(1 + static_cast<std::size_t>(random.below(4)));
    for (RouteGroup& group : groups) {
      group = transfer(random.below(8), 4 + random.below(12), 1 + random.below(6),
                       1 + random.below(5), 1 + random.below(9));
      for (Route& route : group.routes) route.stages.add({RouteLane::Decode, random.below(4)});
    }
    Nanoseconds best = INT64_MAX;
    std::vector<std::size_t> order(groups.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      for_all_choices(groups, [&](const RouteIndices& routes) {
        best = std::min(best, time_in_order(groups, routes, order));
      });
    } while (std::next_permutation(order.begin(), order.end()));
    ASSERT_LE(bound_routes(groups, search_routes(groups).time).in_any_order, best);
  }
}

TEST(Routes, RoutesThatAnotherOneBeatsAreLeftOut) {
  Random random(5);
  std::size_t num_gone = 0;
  for (int i = 0; i < 300; ++i) {
    auto groups = any_groups(random, 5, 5);
    const Nanoseconds best = best_of_all(groups);
    const std::uint32_t first = groups[0].routes[0].id;
    num_gone += prune_routes(groups);
    ASSERT_EQ(groups[0].routes[0].id, first);
    ASSERT_EQ(best_of_all(groups), best);
  }
  EXPECT_GT(num_gone, 0u);
}

TEST(Routes, SmallTensorsJoinTheirNeighbours) {
  const ProfiledTensor tensors[] = {{10, 1}, {200, 2}, {5, 3}, {5, 4}, {100, 5}, {7, 6}};
  const std::vector<RouteGroup> groups = join_small(tensors, 100);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].num_elems, 210);
  EXPECT_EQ(groups[0].backward, 3);
  EXPECT_EQ(groups[1].num_elems, 110);
  EXPECT_EQ(groups[1].backward, 12);
  EXPECT_EQ(groups[2].num_elems, 7);
  EXPECT_TRUE(join_small({}, 100).empty());
}

TEST(Routes, ManyGroupsArePlannedWithinTheirSteps) {
  std::vector<RouteGroup> groups;
  for (int i = 0; i < 20'000; ++i) {
    groups.push_back(transfer(10 + i % 13, 30 + i % 17, 3 + i % 5, 2, 9));
    groups.back().num_elems = 1000 + i;
  }
  const RouteStarts starts = route_starts(groups, {.most_steps = 20'000'000});
  const RoutePlan plan = search_routes(groups, {.most_steps = 20'000'000});
  EXPECT_LE(plan.time, std::min({starts.dense.time, starts.cheapest.time, starts.beam.time}));
}

// ---- SeCoPa ----

std::vector<std::int64_t> vgg19_gradients() {
  std::vector<std::int64_t> sizes;
  std::int64_t before = 3;
  for (const std::int64_t width :
       {64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512, 512, 512, 512, 512}) {
    sizes.insert(sizes.end(), {9 * before * width, width});
    before = width;
  }
  before = std::int64_t{512} * 7 * 7;
  for (const std::int64_t width : {4096, 4096, 1000}) {
    sizes.insert(sizes.end(), {before * width, width});
    before = width;
  }
  return sizes;
}

// Coefficients of the released planner, whose payloads have a sixteenth of the bytes.
SecopaCosts secopa_costs(std::uint32_t nodes) {
  SecopaCosts costs{.payload_part = 0.0625,
                    .encode = {1.4133e-8, 0.058938, 0.05408},
                    .decode = {6.2041e-9, 0.13956, 0.07287},
                    .gather = {},
                    .broadcast = {},
                    .send = {8.5005e-7, 0.20337, 0.09766}};
  if (nodes == 4) costs.gather = {2.7156e-6, 0.4193, 0.15573};
  if (nodes == 4) costs.broadcast = {2.7157e-6, 0.22156, 0.1482};
  if (nodes == 8) costs.gather = {6.1167e-6, 0.80768, 0.28778};
  if (nodes == 8) costs.broadcast = {6.1172e-6, 0.27285, 0.29666};
  if (nodes == 16) costs.gather = {1.2937e-5, 1.4406, 0.59503};
  if (nodes == 16) costs.broadcast = {1.2915e-5, 0.45538, 0.58353};
  return costs;
}

// How many gradients are compressed, by partitions, from 1 on.
std::vector<int> compressed_by_partitions(SecopaTopology topology, std::uint32_t nodes) {
  std::vector<int> counts(nodes + 1, 0);
  for (const std::int64_t elems : vgg19_gradients()) {
    const SecopaChoice choice = choose_partitions(secopa_costs(nodes), topology, nodes, elems);
    if (choice.is_compressed) ++counts[choice.partitions];
    if (!choice.is_compressed) EXPECT_EQ(choice.partitions, nodes);
  }
  return counts;
}

TEST(Secopa, PlansOfVgg19AreThoseOfTheReleasedPlanner) {
  const auto ps = SecopaTopology::ParameterServers;
  const auto ring = SecopaTopology::Ring;
  EXPECT_EQ(vgg19_gradients().size(), 38u);
  EXPECT_EQ(compressed_by_partitions(ps, 4), (std::vector<int>{0, 0, 1, 0, 10}));
  EXPECT_EQ(compressed_by_partitions(ps, 8), (std::vector<int>{0, 0, 0, 7, 1, 0, 0, 0, 2}));
  std::vector<int> of16(17, 0);
  of16[6] = of16[12] = of16[16] = 1;
  EXPECT_EQ(compressed_by_partitions(ps, 16), of16);
  for (const auto& [nodes, count] : {std::pair(4u, 11), std::pair(8u, 11), std::pair(16u, 10)}) {
    const std::vector<int> counts = compressed_by_partitions(ring, nodes);
    EXPECT_EQ(counts[nodes], count);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), count);
  }
}

TEST(Secopa, TimesAreThoseOfTheReleasedPlanner) {
  const SecopaChoice small =
      choose_partitions(secopa_costs(4), SecopaTopology::ParameterServers, 4, 4 << 20);
  EXPECT_TRUE(small.is_compressed);
  EXPECT_EQ(small.partitions, 4u);
  EXPECT_NEAR(small.milliseconds, 2.132, 0.001);
  const SecopaChoice large =
      choose_partitions(secopa_costs(16), SecopaTopology::ParameterServers, 16, 98 << 20);
  EXPECT_EQ(large.partitions, 16u);
  EXPECT_NEAR(large.milliseconds, 18.93, 0.01);
  EXPECT_NEAR(choose_partitions(secopa_costs(16), SecopaTopology::Ring, 16, 16 << 20).milliseconds,
              11.192, 0.001);
}

}  // namespace
}  // namespace cinch::rt
