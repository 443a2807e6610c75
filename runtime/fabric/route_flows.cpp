#include "runtime/fabric/route_flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/fabric/edge_colouring.h"

namespace cinch::rt {
namespace {

using Wide = unsigned __int128;
// 20 GB of memory.
constexpr std::uint64_t kMostPieces = UINT64_C(1) << 30;

// How flows of one size are dealt to spines. As many as the spines divide stay whole; the others
// are cut.
struct Deal {
  std::uint64_t num_flows = 0, num_spines = 0;
  std::uint32_t pieces_of_cut = 1;  // of each flow that is cut, if they are equal
  bool is_unequal = false;
};

// Gives every spine the same.
Deal even_deal(std::uint64_t num_flows, std::uint64_t num_spines, bool is_unequal) {
  const auto pieces = num_spines / std::gcd(num_flows % num_spines, num_spines);
  return {num_flows, num_spines, static_cast<std::uint32_t>(pieces), is_unequal};
}

class PieceWriter {
 public:
  explicit PieceWriter(std::span<const Flow> flows) { pieces_.reserve(flows.size()); }

  void add_whole(std::uint32_t flow, std::uint32_t spine) {
    pieces_.push_back({.flow = flow, .spine = spine});
  }

  // The pieces of the flow that is number `index` of a deal.
  void add_dealt(std::uint32_t flow, const Deal& deal, std::uint64_t index,
                 std::span<const std::uint32_t> spines) {
    const std::uint64_t num_cut = deal.num_flows % deal.num_spines;
    const std::uint64_t num_whole = deal.num_flows - num_cut;
    if (index < num_whole) return add_whole(flow, spines[index % spines.size()]);
    if (deal.is_unequal) return add_filled(flow, num_cut, index - num_whole, spines);
    const std::uint32_t parts = deal.pieces_of_cut;
    std::uint64_t at = (index - num_whole) * parts;
    for (std::uint32_t part = 0; part < parts; ++part, ++at) {
      pieces_.push_back({flow, spines[at % spines.size()], part, part + 1, parts});
    }
  }

  std::vector<FlowPiece> take() { return std::move(pieces_); }
  std::size_t size() const { return pieces_.size(); }
  std::span<const FlowPiece> since(std::size_t begin) const {
    return std::span(pieces_).subspan(begin);
  }
  void drop_since(std::size_t begin) { pieces_.resize(begin); }
  bool is_too_long() const { return pieces_.size() > kMostPieces; }

 private:
  // Flows lie one behind the other. Each spine is filled to its share before the next one begins,
  // so pieces end only where a flow or a spine does. A flow is as long as the number of spines, and
  // a share as the number of flows.
  void add_filled(std::uint32_t flow, std::uint64_t num_flows, std::uint64_t index,
                  std::span<const std::uint32_t> spines) {
    const std::uint64_t first = index * spines.size(), last = first + spines.size();
    for (std::uint64_t at = first; at < last;) {
      const std::uint64_t spine = at / num_flows;
      const std::uint64_t end = std::min(last, (spine + 1) * num_flows);
      add_range(flow, spines[spine], at - first, end - first, spines.size());
      at = end;
    }
  }

  void add_range(std::uint32_t flow, std::uint32_t spine, std::uint64_t begin, std::uint64_t end,
                 std::uint64_t parts) {
    const std::uint64_t common = std::gcd(std::gcd(begin, end), parts);
    const auto reduced = [&](std::uint64_t part) {
      return static_cast<std::uint32_t>(part / common);
    };
    pieces_.push_back({flow, spine, reduced(begin), reduced(end), reduced(parts)});
  }

  std::vector<FlowPiece> pieces_;
};

class FlowRouter {
 public:
  FlowRouter(const Fabric& fabric, std::span<const Flow> flows, const RoutingOptions& options,
             UsableSpines& spines)
      : fabric_(fabric), flows_(flows), options_(options), spines_(spines) {}

  Result<std::vector<FlowPiece>> route() {
    switch (options_.rule) {
      case RoutingRule::Sprayed:
        return by_flow(
            [](std::uint32_t flow, std::span<const std::uint32_t> spines, PieceWriter& pieces) {
              pieces.add_dealt(flow, even_deal(1, spines.size(), false), 0, spines);
            });
      case RoutingRule::Hashed:
        return by_flow(
            [this](std::uint32_t flow, std::span<const std::uint32_t> spines, PieceWriter& pieces) {
              pieces.add_whole(flow, spines[hash_of(flow) % spines.size()]);
            });
      case RoutingRule::ByHost:
      case RoutingRule::ByLeafPair:
        return by_group();
      case RoutingRule::Coloured:
      case RoutingRule::ColouredAboveNic:
      case RoutingRule::ColouredWhole:
        return coloured();
    }
    return invalid("no such routing rule");
  }

 private:
  bool is_within_leaf(const Flow& flow) const {
    return fabric_.leaf_of(flow.source) == fabric_.leaf_of(flow.destination);
  }

  std::uint64_t hash_of(std::uint32_t flow) const {
    const std::uint32_t key[] = {flows_[flow].source, flows_[flow].destination, flow};
    return hash64(key, sizeof key, options_.seed);
  }

  // `add_pieces(flow, spines, pieces)` for each flow between leaves, with the spines that these
  // reach.
  template <typename AddPieces>
  Result<std::vector<FlowPiece>> by_flow(const AddPieces& add_pieces) {
    PieceWriter pieces(flows_);
    for (std::uint32_t i = 0; i < flows_.size(); ++i) {
      const Flow& flow = flows_[i];
      if (is_within_leaf(flow)) {
        pieces.add_whole(i, kWithinLeaf);
        continue;
      }
      const auto spines =
          TRY(spines_.between(fabric_.leaf_of(flow.source), fabric_.leaf_of(flow.destination)));
      add_pieces(i, spines, pieces);
      if (pieces.is_too_long()) {
        return fail(ErrorKind::Overflow, fmt::format("more than {} pieces", kMostPieces));
      }
    }
    return pieces.take();
  }

  // Flows with the same source host or leaf, destination leaf and bytes.
  Result<std::vector<FlowPiece>> by_group() {
    const auto key = [this](std::uint32_t i) {
      const Flow& flow = flows_[i];
      const bool is_by_host = options_.rule == RoutingRule::ByHost;
      return std::tuple(is_by_host ? flow.source : fabric_.leaf_of(flow.source),
                        fabric_.leaf_of(flow.destination), flow.bytes);
    };
    std::vector<std::uint32_t> order(flows_.size()), index(flows_.size()), size(flows_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(key(i), i); });
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && key(order[end]) == key(order[begin])) ++end;
      for (std::size_t at = begin; at < end; ++at) {
        index[order[at]] = static_cast<std::uint32_t>(at - begin);
        size[order[at]] = static_cast<std::uint32_t>(end - begin);
      }
    }
    return by_flow(
        [&](std::uint32_t flow, std::span<const std::uint32_t> spines, PieceWriter& pieces) {
          const Deal deal = even_deal(size[flow], spines.size(), options_.has_unequal_pieces);
          pieces.add_dealt(flow, deal, index[flow], spines);
        });
  }

  Result<std::vector<FlowPiece>> coloured() {
    std::vector<BipartiteEdge> edges;
    edges.reserve(flows_.size());
    for (const Flow& flow : flows_) {
      if (is_within_leaf(flow)) continue;
      edges.push_back({fabric_.leaf_of(flow.source), fabric_.leaf_of(flow.destination)});
    }
    const EdgeColouring colouring = colour_edges(edges, fabric_.num_leaves, fabric_.num_leaves);
    const std::uint64_t num_colours = colouring.num_colours;
    const std::uint64_t num_spines = std::max<std::size_t>(spines_.all().size(), 1);
    const Deal whole{num_colours, num_spines};
    if (options_.rule == RoutingRule::ColouredWhole) return deal_colours(colouring, whole);
    Deal deal = even_deal(num_colours, num_spines, options_.has_unequal_pieces);
    if (options_.rule == RoutingRule::Coloured) return deal_colours(colouring, deal);

    auto pieces = TRY(deal_colours(colouring, whole));
    LinkLoads loads = TRY(LinkLoads::for_pieces(fabric_, pieces));
    for (const FlowPiece& piece : pieces) loads.add(flows_[piece.flow], piece);
    const std::uint64_t nic = busiest_nic(fabric_, flows_);
    if (loads.largest() * fabric_.host_speed <= Wide{nic} * fabric_.link_speed) return pieces;
    if (!deal.is_unequal) deal.pieces_of_cut = fewest_pieces(deal, nic);
    return deal_colours(colouring, deal);
  }

  // Of q equal pieces of each flow that is cut, the busiest link carries D q / s, rounded up. At
  // most floor(q limit) may be there, where `limit` is how many flows of the largest size a link
  // carries while the busiest host's link carries what it must.
  std::uint32_t fewest_pieces(const Deal& deal, std::uint64_t nic) const {
    std::uint64_t most_bytes = 0;
    for (const Flow& flow : flows_) most_bytes = std::max(most_bytes, flow.bytes);
    const Wide numerator = Wide{nic} * fabric_.link_speed;
    const Wide denominator = Wide{most_bytes} * fabric_.host_speed;
    std::uint32_t pieces = 1;
    while (pieces < deal.pieces_of_cut &&
           Wide{deal.num_flows} * pieces > numerator * pieces / denominator * deal.num_spines) {
      ++pieces;
    }
    return pieces;
  }

  // A colour is dealt as a flow of a group is.
  Result<std::vector<FlowPiece>> deal_colours(const EdgeColouring& colouring, const Deal& deal) {
    std::size_t edge = 0;
    std::vector<std::size_t> strays;
    auto pieces = TRY(by_flow(
        [&](std::uint32_t flow, std::span<const std::uint32_t> spines, PieceWriter& written) {
          const std::size_t begin = written.size();
          written.add_dealt(flow, deal, colouring.colours[edge++], spines_.all());
          const auto is_reached = [&](const FlowPiece& piece) {
            return std::ranges::binary_search(spines, piece.spine);
          };
          if (std::ranges::all_of(written.since(begin), is_reached)) return;
          written.drop_since(begin);
          strays.push_back(begin);
          written.add_whole(flow, spines.front());
        }));
    if (!strays.empty()) CINCH_TRY(place_strays(pieces, strays));
    return pieces;
  }

  // Whole flows whose leaves do not reach the spine of their colour, by their pieces.
  Status place_strays(std::vector<FlowPiece>& pieces, std::span<const std::size_t> strays) {
    LinkLoads loads = TRY(LinkLoads::for_pieces(fabric_, pieces));
    std::size_t next = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (next < strays.size() && strays[next] == i) {
        ++next;
      } else {
        loads.add(flows_[pieces[i].flow], pieces[i]);
      }
    }
    for (const std::size_t stray : strays) {
      FlowPiece& piece = pieces[stray];
      const Flow& flow = flows_[piece.flow];
      const auto spines =
          TRY(spines_.between(fabric_.leaf_of(flow.source), fabric_.leaf_of(flow.destination)));
      piece.spine = *std::ranges::min_element(
          spines, {}, [&](std::uint32_t spine) { return loads.busier(flow, spine); });
      loads.add(flow, piece);
    }
    return Ok{};
  }

  const Fabric& fabric_;
  std::span<const Flow> flows_;
  RoutingOptions options_;
  UsableSpines& spines_;
};

// Of the host that sends on most.
std::uint32_t most_queue_pairs(std::span<const Flow> flows, const Routing& routing) {
  using QueuePair = std::array<std::uint32_t, 3>;  // source, destination, spine
  std::vector<QueuePair> used;
  used.reserve(routing.pieces.size());
  for (const FlowPiece& piece : routing.pieces) {
    const Flow& flow = flows[piece.flow];
    const bool is_path_chosen = routing.rule != RoutingRule::Sprayed;
    used.push_back({flow.source, flow.destination, is_path_chosen ? piece.spine : kWithinLeaf});
  }
  std::ranges::sort(used);
  used.erase(std::ranges::unique(used).begin(), used.end());
  std::size_t most = 0;
  for (std::size_t begin = 0, end = 0; begin < used.size(); begin = end) {
    while (end < used.size() && used[end][0] == used[begin][0]) ++end;
    most = std::max(most, end - begin);
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace

const char* routing_rule_name(RoutingRule rule) {
  constexpr const char* kNames[] = {"sprayed",       "hashed",   "by host",
                                    "by leaf pair",  "coloured", "coloured above the NIC",
                                    "coloured whole"};
  return name_in(kNames, rule, "unknown");
}

Result<Routing> route_flows(const Fabric& fabric, std::span<const Flow> flows,
                            const RoutingOptions& options) {
  UsableSpines spines = TRY(UsableSpines::of(fabric));
  CINCH_TRY(check_flows(fabric, flows));
  auto pieces = TRY(FlowRouter(fabric, flows, options, spines).route());
  return Routing{options.rule, std::move(pieces)};
}

Result<RoutingReport> report_routing(const Fabric& fabric, std::span<const Flow> flows,
                                     const Routing& routing) {
  LinkLoads loads = TRY(LinkLoads::for_pieces(fabric, routing.pieces));
  for (const FlowPiece& piece : routing.pieces) loads.add(flows[piece.flow], piece);
  const auto largest = loads.largest();
  const std::uint64_t units = loads.units_per_byte();
  const auto common = std::gcd(static_cast<std::uint64_t>(largest % units), units);
  if (largest / common > UINT64_MAX) {
    return fail(ErrorKind::Overflow, "the largest load has no fraction of 64 bits");
  }
  RoutingReport report;
  report.largest_load = {static_cast<std::uint64_t>(largest / common), units / common};
  report.busiest_nic = busiest_nic(fabric, flows);
  report.num_flows = flows.size();
  report.num_pieces = routing.pieces.size();
  report.queue_pairs = most_queue_pairs(flows, routing);
  return report;
}

std::string routing_report_text(const RoutingReport& report) {
  const Fraction load = report.largest_load;
  const std::string part = load.denominator == 1 ? "" : fmt::format("/{}", load.denominator);
  return fmt::format(
      "busiest link between a leaf and a spine: {}{} bytes\n"
      "busiest host: {} bytes sent or received\n"
      "pieces: {} of {} flows\n"
      "queue pairs of a host: at most {}\n"
      "No library in use lets ranks choose paths, so this is advice. A transport that can choose "
      "them asks for these pieces.\n",
      load.numerator, part, report.busiest_nic, report.num_pieces, report.num_flows,
      report.queue_pairs);
}

}  // namespace cinch::rt
