// Shares of links against hand computation and against a slow filling of its own.
#include "runtime/simulator/flow_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace cinch::rt {
namespace {

constexpr double kGigabyte = 1e9;  // a second: a byte in 1000 picoseconds

FlowPath over(const std::vector<std::uint32_t>& links, double most = 0) {
  FlowPath path{{}, most};
  for (const std::uint32_t link : links) path.links.push_back({link, 1});
  return path;
}

// Ends of all flows that were started, by id.
std::vector<Picoseconds> run(FlowNetwork& network, std::size_t count) {
  std::vector<Picoseconds> ends(count, -1);
  std::vector<std::uint64_t> ended;
  for (Picoseconds now = network.next_end(); now != kNeverEnds; now = network.next_end()) {
    ended.clear();
    network.advance(now, ended);
    for (const std::uint64_t id : ended) ends[id] = now;
  }
  return ends;
}

TEST(FlowNetwork, AFlowHasItsLinksAlone) {
  FlowNetwork network({12.5 * kGigabyte, 12.5 * kGigabyte, 12.5 * kGigabyte, 12.5 * kGigabyte});
  network.start(network.add_path(over({0, 1, 2, 3})), 1'000'000, 0);
  EXPECT_EQ(run(network, 1)[0], 80'000'000);
  EXPECT_EQ(network.carried_bytes()[2], 1e6);
}

// The textbook's case: what one flow cannot use, the other has.
TEST(FlowNetwork, WhatAFullLinkLeavesIsForOthers) {
  FlowNetwork network({1 * kGigabyte, 3 * kGigabyte});
  network.start(network.add_path(over({0})), 1000, 0);
  network.start(network.add_path(over({0, 1})), 1000, 1);
  network.start(network.add_path(over({1})), 2500, 2);
  // 0.5, 0.5 and 2.5 bytes a nanosecond: all but the last end at 2000 and 1000 nanoseconds.
  const auto ends = run(network, 3);
  EXPECT_EQ(ends[2], 1'000'000);
  EXPECT_EQ(ends[0], 2'000'000);
  EXPECT_EQ(ends[1], 2'000'000);
}

TEST(FlowNetwork, AFlowMayHaveAMost) {
  FlowNetwork network({3 * kGigabyte});
  network.start(network.add_path(over({0}, 1 * kGigabyte)), 1000, 0);
  network.start(network.add_path(over({0})), 2000, 1);
  const auto ends = run(network, 2);
  EXPECT_EQ(ends[0], 1'000'000);
  EXPECT_EQ(ends[1], 1'000'000);
}

TEST(FlowNetwork, PartsOfAFlowShareManyLinks) {
  // Each half over one of two links: as fast as both together.
  FlowNetwork network({1 * kGigabyte, 1 * kGigabyte});
  network.start(network.add_path({{{0, 0.5}, {1, 0.5}}, 0}), 4000, 0);
  EXPECT_EQ(run(network, 1)[0], 2'000'000);
}

TEST(FlowNetwork, LaterFlowsTakeTheirShare) {
  FlowNetwork network({1 * kGigabyte});
  std::vector<std::uint64_t> ended;
  network.start(network.add_path(over({0})), 1000, 0);
  network.advance(500'000, ended);
  EXPECT_TRUE(ended.empty());
  network.start(network.add_path(over({0})), 250, 1);
  const auto ends = run(network, 2);
  EXPECT_EQ(ends[1], 1'000'000);
  EXPECT_EQ(ends[0], 1'250'000);
}

// Rates by definition: raise all flows together, by small steps, until a link of theirs is full.
std::vector<double> slow_rates(const std::vector<double>& capacity,
                               const std::vector<FlowPath>& flows) {
  std::vector<double> rates(flows.size(), 0), used(capacity.size(), 0);
  std::vector<bool> is_frozen(flows.size(), false);
  const double step = 1e-4;
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (is_frozen[f]) continue;
      for (const FlowLink& link : flows[f].links) {
        if (used[link.link] + step > capacity[link.link]) is_frozen[f] = true;
      }
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (is_frozen[f]) continue;
      grows = true;
      rates[f] += step;
      for (const FlowLink& link : flows[f].links) used[link.link] += step;
    }
  }
  return rates;
}

TEST(FlowNetwork, SharesAreMaxMinFair) {
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    std::vector<double> capacity(2 + random() % 5);
    for (double& each : capacity) each = 1 + static_cast<double>(random() % 4);
    std::vector<FlowPath> flows(1 + random() % 7);
    for (FlowPath& flow : flows) {
      for (std::uint32_t link = 0; link < capacity.size(); ++link) {
        if (random() % 2 == 0) flow.links.push_back({link, 1});
      }
      if (flow.links.empty()) flow.links.push_back({0, 1});
    }
    const auto rates = slow_rates(capacity, flows);
    // One flow after the other is made far shorter than the rest: its end tells its rate.
    for (std::size_t f = 0; f < flows.size(); ++f) {
      std::vector<double> speeds;
      for (const double each : capacity) speeds.push_back(each * kGigabyte);
      FlowNetwork network(speeds);
      for (std::size_t g = 0; g < flows.size(); ++g) {
        network.start(network.add_path(flows[g]), g == f ? 10'000 : 1'000'000'000, g);
      }
      const double rate = 10'000 * 1000.0 / static_cast<double>(network.next_end());
      EXPECT_NEAR(rate, rates[f], 0.01) << i << ", flow " << f;
    }
  }
}

TEST(FlowNetwork, WhatTakesWeeksNeverEnds) {
  FlowNetwork network({1e-9, 1 * kGigabyte});
  network.start(network.add_path(over({0})), UINT64_C(1) << 34, 0);
  EXPECT_EQ(network.next_end(), kNeverEnds);
  network.start(network.add_path(over({1})), 1000, 1);
  EXPECT_EQ(network.next_end(), 1'000'000);
}

// In doubles such a ring had never ended.
TEST(FlowNetwork, AlwaysEnds) {
  std::mt19937_64 random(9);
  const std::size_t count = 300;
  std::vector<double> speeds(2 * count, 12.5 * kGigabyte / 7);
  FlowNetwork network(speeds);
  std::uint64_t bytes = 0;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    bytes = 1 + random() % 1'000'003;
    network.start(network.add_path(
                      over({2 * rank, 2 * ((rank + 1) % static_cast<std::uint32_t>(count)) + 1})),
                  bytes, rank);
  }
  const auto ends = run(network, count);
  EXPECT_GT(*std::ranges::min_element(ends), 0);
  EXPECT_EQ(network.num_active(), 0U);
}

}  // namespace
}  // namespace cinch::rt
