#include "runtime/fabric/route_flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runtime/fabric/flows.h"

namespace cinch::rt {
namespace {

Fabric fabric_of(std::uint32_t num_leaves, std::uint32_t hosts_per_leaf, std::uint32_t num_spines) {
  return {.num_leaves = num_leaves, .hosts_per_leaf = hosts_per_leaf, .num_spines = num_spines};
}

// Of flows of one byte: the largest load, and pieces of Ethereal's rule and of coloured flows.
struct ExactCase {
  const char* name;
  Fabric fabric;
  Flows flows;
  Fraction load;
  std::uint64_t by_host, coloured;
  Fraction whole;
};

std::vector<ExactCase> exact_cases() {
  const Fabric s16 = fabric_of(16, 16, 16), s12 = fabric_of(16, 16, 12), s8 = fabric_of(16, 16, 8);
  const Flows all = all_to_all(256), far = far_step(256), shift = shifted(256, 85);
  return {
      {"all to all, 16", s16, all, {240}, 65280, 65280, {240}},
      {"all to all, 12", s12, all, {320}, 96000, 65280, {320}},
      {"all to all, 8", s8, all, {480}, 65280, 65280, {480}},
      {"far step, 16", s16, far, {1}, 4096, 256, {1}},
      {"far step, 12", s12, far, {4, 3}, 3072, 384, {2}},
      {"far step, 8", s8, far, {2}, 2048, 256, {2}},
      {"shift by 85, 16", s16, shift, {1}, 4096, 256, {1}},
      {"shift by 85, 12", s12, shift, {4, 3}, 3072, 384, {2}},
      {"shift by 85, 8", s8, shift, {2}, 2048, 256, {2}},
      {"4 x 4, all to all", fabric_of(4, 4, 3), all_to_all(16), {16}, 336, 240, {16}},
      {"4 x 4, far step", fabric_of(4, 4, 3), far_step(16), {4, 3}, 48, 24, {2}},
      {"4 x 4, far step, 4", fabric_of(4, 4, 4), far_step(16), {1}, 64, 16, {1}},
      {"2 x 2, all to all", fabric_of(2, 2, 3), all_to_all(4), {4, 3}, 28, 16, {2}},
  };
}

TEST(RouteFlows, LoadsAndPiecesAreExact) {
  for (const ExactCase& each : exact_cases()) {
    SCOPED_TRACE(each.name);
    const auto routed = [&](RoutingRule rule) {
      return route(each.fabric, each.flows, {.rule = rule}, kUnits).report;
    };
    EXPECT_EQ(routed(RoutingRule::Sprayed).largest_load, each.load);
    const RoutingReport by_host = routed(RoutingRule::ByHost);
    EXPECT_EQ(by_host.largest_load, each.load);
    EXPECT_EQ(by_host.num_pieces, each.by_host);
    const RoutingReport coloured = routed(RoutingRule::Coloured);
    EXPECT_EQ(coloured.largest_load, each.load);
    EXPECT_EQ(coloured.num_pieces, each.coloured);
    const RoutingReport whole = routed(RoutingRule::ColouredWhole);
    EXPECT_EQ(whole.largest_load, each.whole);
    EXPECT_EQ(whole.num_pieces, each.flows.size());
    EXPECT_EQ(routed(RoutingRule::ByLeafPair).largest_load, each.load);
  }
}

TEST(RouteFlows, GroupsOfLeafPairsNeedFewerPieces) {
  const auto pieces = [](std::uint32_t num_spines, const Flows& flows) {
    const RoutingOptions options{.rule = RoutingRule::ByLeafPair};
    return route(fabric_of(16, 16, num_spines), flows, options, kUnits).report.num_pieces;
  };
  const Flows all = all_to_all(256), far = far_step(256), shift = shifted(256, 83);
  EXPECT_EQ(pieces(16, all), 65280u);
  EXPECT_EQ(pieces(12, all), 63360u + 3840u);
  EXPECT_EQ(pieces(16, far), 256u);
  EXPECT_EQ(pieces(12, far), 384u);
  EXPECT_EQ(pieces(16, shift), 4096u);
  EXPECT_EQ(pieces(12, shift), 576u);
}

// n + r (s / gcd(r, s) - 1) equal pieces, or n + s - gcd(n, s).
TEST(RouteFlows, PiecesOfAGroup) {
  const auto pieces = [](std::uint32_t n, std::uint32_t s, RoutingRule rule, bool is_unequal) {
    Flows flows;
    for (std::uint32_t i = 0; i < n; ++i) flows.push_back({0, n + i, 1});
    const Routed routed =
        route(fabric_of(2, n, s), flows, {.rule = rule, .has_unequal_pieces = is_unequal}, kUnits);
    const std::uint32_t common = std::gcd(n, s);
    EXPECT_EQ(routed.report.largest_load, (Fraction{n / common, s / common}));
    return routed.report.num_pieces;
  };
  for (std::uint32_t n = 1; n <= 16; ++n) {
    for (std::uint32_t s = 1; s <= 16; ++s) {
      const std::uint32_t rest = n % s;
      for (const RoutingRule rule :
           {RoutingRule::ByHost, RoutingRule::ByLeafPair, RoutingRule::Coloured}) {
        EXPECT_EQ(pieces(n, s, rule, false), n + rest * (s / std::gcd(rest, s) - 1));
        EXPECT_EQ(pieces(n, s, rule, true), n + s - std::gcd(n, s));
      }
    }
  }
  EXPECT_EQ(pieces(3, 4, RoutingRule::ByHost, false), 12u);
  EXPECT_EQ(pieces(3, 4, RoutingRule::ByHost, true), 6u);
}

TEST(RouteFlows, AboveTheNicCutsOnlyWhereTheFabricIsBusier) {
  const auto report = [](const Fabric& fabric, const Flows& flows) {
    return route(fabric, flows, {.rule = RoutingRule::ColouredAboveNic}, kUnits).report;
  };
  // The fabric carries 2 against the NIC's 1.
  const RoutingReport far = report(fabric_of(16, 16, 12), far_step(256));
  EXPECT_EQ(far.largest_load, (Fraction{4, 3}));
  EXPECT_EQ(far.num_pieces, 384u);
  EXPECT_EQ(far.busiest_nic, 1u);
  // One flow leaves each leaf, and is as slow as its host.
  const RoutingReport ring = report(fabric_of(16, 16, 12), shifted(256, 1));
  EXPECT_EQ(ring.largest_load, (Fraction{1}));
  EXPECT_EQ(ring.num_pieces, 256u);
  // 17 flows over 16 links of 2/3 of a host's speed: 17 / 16 a link would do, whole flows give 2,
  // and hosts allow 1.5 where they send two flows: halves.
  Fabric slow = fabric_of(2, 17, 16);
  slow.host_speed = 4;
  slow.link_speed = 3;
  Flows flows;
  for (std::uint32_t i = 0; i < 17; ++i) flows.push_back({i, 17 + i, 1});
  flows.push_back({0, 1, 1});
  const RoutingReport halves = report(slow, flows);
  EXPECT_EQ(halves.largest_load, (Fraction{3, 2}));
  EXPECT_EQ(halves.num_pieces, 19u);
  EXPECT_EQ(route(slow, flows, {.rule = RoutingRule::Coloured}, kUnits).report.num_pieces, 33u);
  // No load at all.
  EXPECT_EQ(report(fabric_of(2, 2, 2), {}).largest_load, Fraction{});
  EXPECT_EQ(report(fabric_of(2, 2, 2), {{0, 2, 0}}).num_pieces, 1u);
}

TEST(RouteFlows, WholeColouredFlowsNeverExceedTheBusiestNic) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 1000; ++turn) {
    const std::uint32_t num_leaves = 2 + random() % 7, hosts_per_leaf = 1 + random() % 8;
    const std::uint32_t num_spines = hosts_per_leaf + random() % (17 - hosts_per_leaf);
    const Fabric fabric = fabric_of(num_leaves, hosts_per_leaf, num_spines);
    const Flows flows = random_flows(random, num_leaves * hosts_per_leaf, 1 + random() % 150);
    for (const RoutingRule rule : {RoutingRule::ColouredWhole, RoutingRule::ColouredAboveNic}) {
      const RoutingReport report = route(fabric, flows, {.rule = rule}, 1).report;
      ASSERT_EQ(report.largest_load.denominator, 1u);
      ASSERT_LE(report.largest_load.numerator, report.busiest_nic) << "turn " << turn;
      ASSERT_EQ(report.num_pieces, flows.size());
    }
  }
}

// With fewer spines, too: no rule is below spraying, and those that promise it are not above.
TEST(RouteFlows, RandomDemandsAreAsFlatAsSpraying) {
  std::mt19937 random(6);
  for (int turn = 0; turn < 300; ++turn) {
    const std::uint32_t num_leaves = 2 + random() % 5, hosts_per_leaf = 1 + random() % 6;
    const Fabric fabric = fabric_of(num_leaves, hosts_per_leaf, 1 + random() % 9);
    const Flows flows = random_flows(random, num_leaves * hosts_per_leaf, 1 + random() % 100);
    const Fraction ideal = route(fabric, flows, {RoutingRule::Sprayed}, kUnits).report.largest_load;
    for (const bool is_unequal : {false, true}) {
      for (const RoutingRule rule :
           {RoutingRule::ByHost, RoutingRule::ByLeafPair, RoutingRule::Coloured}) {
        const RoutingOptions options{.rule = rule, .has_unequal_pieces = is_unequal};
        ASSERT_EQ(route(fabric, flows, options, kUnits).report.largest_load, ideal);
      }
      const RoutingReport above =
          route(fabric, flows, {RoutingRule::ColouredAboveNic, 0, is_unequal}, kUnits).report;
      ASSERT_TRUE(above.largest_load == ideal ||
                  above.largest_load.numerator <=
                      above.largest_load.denominator * above.busiest_nic);
    }
  }
}

TEST(RouteFlows, FlowsOfDifferentSizes) {
  std::mt19937 random(7);
  const Fabric fabric = fabric_of(4, 4, 6);
  for (int turn = 0; turn < 50; ++turn) {
    Flows flows = random_flows(random, 16, 120);
    for (Flow& flow : flows) flow.bytes = random() % 5 * 1000;
    const Fraction ideal = route(fabric, flows, {RoutingRule::Sprayed}, kUnits).report.largest_load;
    for (const RoutingRule rule : {RoutingRule::ByHost, RoutingRule::ByLeafPair}) {
      EXPECT_EQ(route(fabric, flows, {rule}, kUnits).report.largest_load, ideal);
    }
    for (const RoutingRule rule :
         {RoutingRule::Hashed, RoutingRule::Coloured, RoutingRule::ColouredAboveNic}) {
      route(fabric, flows, {rule}, kUnits);
    }
  }
}

TEST(RouteFlows, PiecesCarryEachByteOnce) {
  const Flows flows = {{0, 4, 1'000'003}, {1, 4, UINT64_C(1) << 60}, {0, 5, 2}};
  for (const bool is_unequal : {false, true}) {
    const auto routing = route_flows(
        fabric_of(2, 4, 7), flows, {.rule = RoutingRule::ByHost, .has_unequal_pieces = is_unequal});
    ASSERT_TRUE(routing);
    std::vector<std::uint64_t> covered(flows.size(), 0);
    for (const FlowPiece& piece : routing->pieces) {
      const PieceRange range = bytes_of(piece, flows[piece.flow].bytes);
      EXPECT_EQ(range.begin, covered[piece.flow]);
      EXPECT_LE(range.begin, range.end);
      covered[piece.flow] = range.end;
    }
    for (std::size_t i = 0; i < flows.size(); ++i) EXPECT_EQ(covered[i], flows[i].bytes);
  }
}

TEST(RouteFlows, HashesFollowTheSeed) {
  const Fabric fabric = fabric_of(16, 16, 16);
  const Flows flows = far_step(256);
  const auto routed = [&](std::uint64_t seed) {
    return route(fabric, flows, {.rule = RoutingRule::Hashed, .seed = seed}, 1);
  };
  EXPECT_EQ(routed(1).routing.pieces, routed(1).routing.pieces);
  EXPECT_NE(routed(1).routing.pieces, routed(2).routing.pieces);
  // ECMP's mean is 4.65 here.
  std::uint64_t sum = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RoutingReport report = routed(seed).report;
    EXPECT_EQ(report.num_pieces, 256u);
    sum += report.largest_load.numerator;
  }
  EXPECT_GT(sum, 440u);
  EXPECT_LT(sum, 490u);
}

TEST(RouteFlows, QueuePairsOfAHost) {
  const auto queue_pairs = [](const Flows& flows, RoutingRule rule) {
    return route(fabric_of(16, 16, 12), flows, {rule}, kUnits).report.queue_pairs;
  };
  const Flows far = far_step(256);
  EXPECT_EQ(queue_pairs(far, RoutingRule::Sprayed), 1u);
  EXPECT_EQ(queue_pairs(far, RoutingRule::ByHost), 12u);
  EXPECT_EQ(queue_pairs(far, RoutingRule::Coloured), 3u);
  EXPECT_EQ(queue_pairs(far, RoutingRule::ColouredWhole), 1u);
  // 15 destinations on the leaf; on each other leaf 12 whole flows, and 4 in 3 pieces.
  EXPECT_EQ(queue_pairs(all_to_all(256), RoutingRule::ByHost), 15u + 15 * (12 + 4 * 3));
  EXPECT_EQ(queue_pairs(all_to_all(256), RoutingRule::Coloured), 255u);
  // Two flows to one destination over one spine share theirs.
  const Flows twice = {{0, 16, 1}, {0, 16, 1}};
  EXPECT_EQ(route(fabric_of(16, 16, 1), twice, {RoutingRule::ByHost}, 1).report.queue_pairs, 1u);
}

TEST(RouteFlows, ReportsForPeople) {
  const Routed routed =
      route(fabric_of(16, 16, 12), far_step(256), {.rule = RoutingRule::Coloured}, kUnits);
  EXPECT_EQ(routing_report_text(routed.report),
            "busiest link between a leaf and a spine: 4/3 bytes\n"
            "busiest host: 1 bytes sent or received\n"
            "pieces: 384 of 256 flows\n"
            "queue pairs of a host: at most 3\n"
            "No library in use lets ranks choose paths, so this is advice. A transport that can "
            "choose them asks for these pieces.\n");
  EXPECT_STREQ(routing_rule_name(RoutingRule::Sprayed), "sprayed");
  EXPECT_STREQ(routing_rule_name(RoutingRule::ColouredWhole), "coloured whole");
}

}  // namespace
}  // namespace cinch::rt
