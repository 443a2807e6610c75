// Spines and links that are down, and requests that are not valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/runtime/fabric/flows.h"

namespace cinch::rt {
namespace {

constexpr RoutingRule kRules[] = {RoutingRule::Sprayed,      RoutingRule::Hashed,
                                  RoutingRule::ByHost,       RoutingRule::ByLeafPair,
                                  RoutingRule::Coloured,     RoutingRule::ColouredAboveNic,
                                  RoutingRule::ColouredWhole};

std::string failure(const Fabric& fabric, const Flows& flows, RoutingRule rule, ErrorKind kind) {
  const auto routing = route_flows(fabric, flows, {rule});
  if (routing) return "";
  EXPECT_EQ(routing.error().kind, kind);
  return routing.error().message;
}

TEST(RoutingFailures, OneSpineLessIsASmallerFabric) {
  const Flows flows = far_step(256);
  const Fabric smaller{.num_leaves = 16, .hosts_per_leaf = 16, .num_spines = 12};
  Fabric fabric{.num_leaves = 16, .hosts_per_leaf = 16, .num_spines = 16};
  fabric.down_spines = {0, 5, 6, 15};
  for (const RoutingRule rule : kRules) {
    for (const bool is_unequal : {false, true}) {
      const RoutingOptions options{.rule = rule, .has_unequal_pieces = is_unequal};
      const RoutingReport expected = route(smaller, flows, options, 12).report;
      const RoutingReport report = route(fabric, flows, options, 12).report;
      EXPECT_EQ(report.largest_load, expected.largest_load);
      EXPECT_EQ(report.num_pieces, expected.num_pieces);
    }
  }
}

TEST(RoutingFailures, LinksThatAreDownCarryNothing) {
  std::mt19937 random(8);
  int cut_off = 0;
  for (int turn = 0; turn < 300; ++turn) {
    Fabric fabric{.num_leaves = 5, .hosts_per_leaf = 4, .num_spines = 8};
    for (std::uint32_t i = random() % 16; i > 0; --i) {
      fabric.down_links.push_back(
          {static_cast<std::uint32_t>(random() % 5), static_cast<std::uint32_t>(random() % 8)});
    }
    if (turn % 3 == 0) fabric.down_spines = {static_cast<std::uint32_t>(random() % 8)};
    const Flows flows = random_flows(random, 20, 60);
    if (!route_flows(fabric, flows, {RoutingRule::Hashed})) {
      ++cut_off;
      continue;
    }
    for (const RoutingRule rule : kRules) route(fabric, flows, {rule}, kUnits);
  }
  EXPECT_LT(cut_off, 30);
}

// Groups use what is left to their two leaves: 6 flows over 2 of 3 spines.
TEST(RoutingFailures, GroupsUseWhatIsLeft) {
  Fabric fabric{.num_leaves = 3, .hosts_per_leaf = 6, .num_spines = 3};
  fabric.down_links = {{1, 2}};
  Flows flows;
  for (std::uint32_t i = 0; i < 6; ++i) flows.push_back({0, 6 + i, 1});
  for (std::uint32_t i = 0; i < 6; ++i) flows.push_back({0, 12 + i, 1});
  const Routed routed = route(fabric, flows, {RoutingRule::ByHost}, 1);
  EXPECT_EQ(routed.report.largest_load, (Fraction{5}));
  EXPECT_EQ(routed.report.num_pieces, 12u);
}

// Six flows of six colours over three spines: two that would cross the lost link go over the
// others, one each.
TEST(RoutingFailures, ColoursWhoseSpineIsOutOfReachGoWhereLeastIs) {
  Fabric fabric{.num_leaves = 3, .hosts_per_leaf = 6, .num_spines = 3};
  fabric.down_links = {{1, 2}};
  Flows flows;
  for (std::uint32_t i = 0; i < 6; ++i) flows.push_back({i, 6 + i, 1});
  const Routed routed = route(fabric, flows, {RoutingRule::Coloured}, 1);
  EXPECT_EQ(routed.report.largest_load, (Fraction{3}));
  EXPECT_EQ(routed.report.num_pieces, 6u);
}

// Three flows go over two spines. The third spine reaches one leaf alone, and so carries nothing.
TEST(RoutingFailures, ASpineOfOneLeafIsNoWay) {
  Fabric fabric{.num_leaves = 3, .hosts_per_leaf = 6, .num_spines = 3};
  fabric.down_links = {{0, 1}, {1, 1}};
  const Flows flows = {{0, 6, 1}, {1, 7, 1}, {2, 8, 1}};
  const Routed routed = route(fabric, flows, {RoutingRule::Coloured}, 2);
  EXPECT_EQ(routed.report.largest_load, (Fraction{3, 2}));
  EXPECT_EQ(routed.report.num_pieces, 4u);
}

TEST(RoutingFailures, NoSpineIsLeft) {
  Fabric fabric{.num_leaves = 3, .hosts_per_leaf = 2, .num_spines = 2};
  fabric.down_links = {{0, 0}, {1, 1}};
  const Flows fine = {{0, 4, 1}, {5, 2, 1}, {0, 1, 1}}, cut_off = {{0, 4, 1}, {0, 3, 1}};
  const Flows within = {{0, 1, 1}};
  Fabric dark = fabric;
  dark.down_spines = {0, 1};
  for (const RoutingRule rule : kRules) {
    route(fabric, fine, {rule}, 2);
    EXPECT_EQ(failure(fabric, cut_off, rule, ErrorKind::Unavailable),
              "no spine is left between leaves 0 and 1");
    EXPECT_EQ(failure(dark, fine, rule, ErrorKind::Unavailable),
              "no spine is left between leaves 0 and 2");
    EXPECT_EQ(route(dark, within, {rule}, 1).report.largest_load, Fraction{});
  }
}

TEST(RoutingFailures, WrongRequests) {
  const Fabric fabric{.num_leaves = 2, .hosts_per_leaf = 2, .num_spines = 2};
  const auto of_fabric = [](const Fabric& wrong, ErrorKind kind) {
    return failure(wrong, {}, RoutingRule::Coloured, kind);
  };
  const auto of_flows = [&](const Flows& flows, ErrorKind kind) {
    return failure(fabric, flows, RoutingRule::Coloured, kind);
  };
  EXPECT_EQ(of_fabric({}, ErrorKind::InvalidArgument), "a fabric without leaves");
  EXPECT_EQ(of_fabric({.num_leaves = 1}, ErrorKind::InvalidArgument), "a fabric without hosts");
  EXPECT_EQ(of_fabric({.num_leaves = 1, .hosts_per_leaf = 1}, ErrorKind::InvalidArgument),
            "a fabric without spines");
  EXPECT_EQ(of_fabric({1 << 16, 1 << 16, 1}, ErrorKind::OutOfRange),
            "4294967296 hosts: at most 2^32 - 1");
  EXPECT_THAT(of_fabric({1 << 16, 1, 1 << 16}, ErrorKind::OutOfRange),
              testing::StartsWith("65536 spines with 4294967296 links to leaves: at most"));
  EXPECT_EQ(of_fabric({2, 2, 2, 0, 1}, ErrorKind::OutOfRange), "speeds 0 and 1: from 1 to 2^40");
  EXPECT_EQ(of_fabric({2, 2, 2, 1, 1, {1, 2}}, ErrorKind::OutOfRange),
            "down_spines[1]: spine 2 of 2");
  EXPECT_EQ(of_fabric({2, 2, 2, 1, 1, {}, {{2, 0}}}, ErrorKind::OutOfRange),
            "down_links[0]: leaf 2 of 2");
  EXPECT_EQ(of_fabric({2, 2, 2, 1, 1, {}, {{0, 2}}}, ErrorKind::OutOfRange),
            "down_links[0]: spine 2 of 2");
  EXPECT_EQ(of_flows({{0, 1, 1}, {1, 4, 1}}, ErrorKind::OutOfRange), "flow 1: host 4 of 4");
  EXPECT_EQ(of_flows({{3, 3, 1}}, ErrorKind::InvalidArgument), "flow 0 goes from host 3 to itself");
  EXPECT_EQ(of_flows({{0, 1, INT64_MAX}, {0, 1, 1}}, ErrorKind::Overflow),
            "the flows together have 2^63 bytes or more");
}

TEST(RoutingFailures, FractionsWithoutACommonDenominator) {
  // Each pair of leaves has another number of spines left, most of them primes.
  constexpr std::uint32_t kLeft[] = {53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101};
  Fabric fabric{.num_leaves = 12, .hosts_per_leaf = 1, .num_spines = 103};
  Flows flows;
  for (std::uint32_t leaf = 1; leaf < 12; ++leaf) {
    for (std::uint32_t spine = kLeft[leaf - 1]; spine < 103; ++spine) {
      fabric.down_links.push_back({leaf, spine});
    }
    flows.push_back({0, leaf, 1});
  }
  const auto routing = route_flows(fabric, flows, {RoutingRule::Sprayed});
  ASSERT_TRUE(routing);
  const auto report = report_routing(fabric, flows, *routing);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Overflow);
}

}  // namespace
}  // namespace cinch::rt
