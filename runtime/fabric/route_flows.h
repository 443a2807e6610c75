// Which spines flows between leaves take, in how many pieces, and what that costs.
//
// No library in use lets ranks choose paths, so for now this is advice, and a part of
// predictions. A transport that can choose them asks this library.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/fabric/fabric.h"

namespace cinch::rt {

enum class RoutingRule : std::uint8_t {
  /// Ideal packet spraying: an equal share of every flow over each usable spine. Where no link is
  /// down, no rule loads the busiest link less.
  Sprayed,
  /// A flow goes whole over a spine that its hosts, its number and a seed choose, as with ECMP.
  Hashed,
  /// Ethereal's rule (Addanki, Goyal, Marinos, Schmid, arXiv 2407.00550) for each source host and
  /// destination leaf. Of n flows over s spines, n mod s are cut into s / gcd(n mod s, s) equal
  /// pieces. All s links carry n / s flows then. Hosts need to know nothing of each other.
  ByHost,
  /// The same rule for all flows from one leaf to another one.
  ByLeafPair,
  /// Colours all flows between leaves with D colours, where D is the most flows that a leaf sends
  /// or receives, so that a leaf has one flow of each colour at most (edge_colouring.h). Colours
  /// below D - D mod s go whole over spine (colour mod s). The others are cut as under ByHost. No
  /// link carries more than D / s flows.
  Coloured,
  /// Coloured flows in as few equal pieces as keep links between leaves and spines within the time
  /// of the busiest host's link; in as many as under Coloured if none do. With no more hosts on a
  /// leaf than spines, links of one speed and flows of one size, all flows stay whole.
  ColouredAboveNic,
  /// Coloured flows, none of which is cut: links carry up to D / s flows, rounded up.
  ColouredWhole,
};
const char* routing_rule_name(RoutingRule rule);

struct RoutingOptions {
  RoutingRule rule = RoutingRule::Coloured;
  std::uint64_t seed = 0;  // Hashed
  /// Pieces where a group is cut may have different sizes. A group of n flows then has the fewest
  /// that give every spine the same, n + s - gcd(n, s).
  bool has_unequal_pieces = false;
};

struct Routing {
  RoutingRule rule = RoutingRule::Coloured;
  /// In the order of flows and of their bytes. A flow within a leaf is one piece.
  std::vector<FlowPiece> pieces;
};

/// Rules that form groups put flows of equal bytes into one. Coloured rules count flows, so what
/// they promise of loads holds for flows of equal bytes.
///
/// Where some spines or links are down, rules use the spines that are left to the two leaves.
/// Coloured rules use all spines that are left to any two leaves. If the leaves of a flow do not
/// reach its spine, it goes whole over the one that they reach whose busier link then carries
/// least.
///
/// Errors: those of UsableSpines::of, check_flows and UsableSpines::between; Overflow where pieces
/// are too many, or fractions of no common denominator of 64 bits.
Result<Routing> route_flows(const Fabric& fabric, std::span<const Flow> flows,
                            const RoutingOptions& options);

/// In lowest terms.
struct Fraction {
  std::uint64_t numerator = 0, denominator = 1;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

struct RoutingReport {
  Fraction largest_load;          // bytes over the busiest link between a leaf and a spine
  std::uint64_t busiest_nic = 0;  // bytes that a host sends, or receives
  std::uint64_t num_flows = 0, num_pieces = 0;
  /// The most that a host sends on: one for each destination and spine, and for each destination if
  /// the network sprays.
  std::uint32_t queue_pairs = 0;
};
/// `routing` is of these flows. Errors: Overflow where a load has no fraction of 64 bits.
Result<RoutingReport> report_routing(const Fabric& fabric, std::span<const Flow> flows,
                                     const Routing& routing);
/// Lines for people.
std::string routing_report_text(const RoutingReport& report);

}  // namespace cinch::rt
