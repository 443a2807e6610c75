#include "runtime/fabric/edge_colouring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

namespace cinch::rt {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// `count` parallel edges between the vertices of a pair.
struct Parallel {
  std::uint32_t pair = 0, count = 0;
};
using Multigraph = std::vector<Parallel>;
// Edges of one colour, as pairs.
using Matching = std::vector<std::uint32_t>;

// Colours a multigraph whose edges are counted by pair. Splits it along Euler trails into halves of
// half the degree (Gabow, 1976). The first half is coloured by the same procedure. Some of its
// colours then move to the second half, whose degree so becomes a power of two, which splits down
// to single colours. Only an odd degree leaves one colour too many, at most log D times in all; its
// edges are coloured again by alternating paths (König, 1916).
class PairColouring {
 public:
  PairColouring(std::vector<BipartiteEdge> pairs, std::uint32_t num_left, std::uint32_t num_right)
      : pairs_(std::move(pairs)),
        num_left_(num_left),
        num_vertices_(std::size_t{num_left} + num_right),
        slot_of_(pairs_.size(), kNone) {}

  std::vector<Matching> colour(const Multigraph& graph, std::uint32_t degree) {
    std::vector<Matching> colours;
    if (degree == 1) {
      append_matching(graph, colours);
      return colours;
    }
    const std::uint32_t half = degree - degree / 2, power = std::bit_ceil(half);
    auto [first, second] = split(graph);
    colours = colour(first, half);
    if (power > half) {
      for (std::uint32_t moved = half; moved < power; ++moved) {
        for (const std::uint32_t pair : colours.back()) second.push_back({pair, 1});
        colours.pop_back();
      }
      second = joined(second);
    }
    halve(second, power, colours);
    if (degree % 2 != 0) colour_smallest_again(colours);
    return colours;
  }

 private:
  using Side = std::uint32_t;  // 0: left, 1: right

  std::uint32_t end(std::uint32_t pair, Side side) const {
    return side == 0 ? pairs_[pair].left : pairs_[pair].right + num_left_;
  }

  static void append_matching(const Multigraph& graph, std::vector<Matching>& colours) {
    Matching& matching = colours.emplace_back();
    matching.reserve(graph.size());
    for (const Parallel& edges : graph) matching.push_back(edges.pair);
  }

  // Adds the colours of a graph whose largest degree is at most `power`, a power of two.
  void halve(const Multigraph& graph, std::uint32_t power, std::vector<Matching>& colours) {
    if (power == 1) return append_matching(graph, colours);
    const auto [first, second] = split(graph);
    halve(first, power / 2, colours);
    halve(second, power / 2, colours);
  }

  // One entry for each pair.
  Multigraph joined(const Multigraph& graph) {
    Multigraph result;
    for (const Parallel& edges : graph) {
      std::uint32_t& slot = slot_of_[edges.pair];
      if (slot == kNone) {
        slot = static_cast<std::uint32_t>(result.size());
        result.push_back({edges.pair, 0});
      }
      result[slot].count += edges.count;
    }
    for (const Parallel& edges : result) slot_of_[edges.pair] = kNone;
    return result;
  }

  // Two graphs in which every vertex has half of its edges, rounded up or down. Half of a pair's
  // edges go each way; trails decide about the odd one.
  std::pair<Multigraph, Multigraph> split(const Multigraph& graph) {
    odd_.clear();
    for (const Parallel& edges : graph) {
      if (edges.count % 2 != 0) odd_.push_back(edges.pair);
    }
    walk_trails();
    std::pair<Multigraph, Multigraph> halves;
    halves.first.reserve(graph.size());
    halves.second.reserve(graph.size());
    std::size_t odd = 0;
    for (const Parallel& edges : graph) {
      std::array<std::uint32_t, 2> counts{edges.count / 2, edges.count / 2};
      if (edges.count % 2 != 0) ++counts[half_of_[odd++]];
      if (counts[0] > 0) halves.first.push_back({edges.pair, counts[0]});
      if (counts[1] > 0) halves.second.push_back({edges.pair, counts[1]});
    }
    return halves;
  }

  // Every vertex marries its odd edges two by two. Edges that are so linked form paths and cycles.
  // Along them the halves alternate, which a cycle permits because it has an even length.
  void walk_trails() {
    partners_.assign(odd_.size(), {kNone, kNone});
    half_of_.assign(odd_.size(), kUnknown);
    waiting_.assign(num_vertices_, kNone);
    for (std::uint32_t i = 0; i < odd_.size(); ++i) {
      for (const Side side : {0u, 1u}) {
        std::uint32_t& waiting = waiting_[end(odd_[i], side)];
        if (waiting == kNone) {
          waiting = i;
          continue;
        }
        partners_[i][side] = waiting;
        partners_[waiting][side] = i;
        waiting = kNone;
      }
    }
    for (std::uint32_t i = 0; i < odd_.size(); ++i) {
      if (partners_[i][0] == kNone) walk(i, 0);
      if (partners_[i][1] == kNone) walk(i, 1);
    }
    for (std::uint32_t i = 0; i < odd_.size(); ++i) walk(i, 0);
  }

  // From an edge that is entered at `side` to the path's end, or around the cycle.
  void walk(std::uint32_t edge, Side side) {
    while (edge != kNone && half_of_[edge] == kUnknown) {
      half_of_[edge] = static_cast<std::uint8_t>(side);
      side = 1 - side;
      edge = partners_[edge][side];
    }
  }

  // Leaves out the colour with the fewest edges, and gives them others.
  void colour_smallest_again(std::vector<Matching>& colours) {
    const auto smaller = [](const Matching& a, const Matching& b) { return a.size() < b.size(); };
    const auto least = std::ranges::min_element(colours, smaller);
    const Matching rest = std::move(*least);
    colours.erase(least);
    if (rest.empty()) return;
    const std::size_t degree = colours.size();
    pair_at_.assign(num_vertices_ * degree, kNone);
    for (std::size_t colour = 0; colour < degree; ++colour) {
      for (const std::uint32_t pair : colours[colour]) put(pair, colour, degree);
      colours[colour].clear();
    }
    for (const std::uint32_t pair : rest) insert(pair, degree);
    for (std::size_t at = 0; at < num_left_ * degree; ++at) {
      if (pair_at_[at] != kNone) colours[at % degree].push_back(pair_at_[at]);
    }
  }

  void put(std::uint32_t pair, std::size_t colour, std::size_t degree) {
    for (const Side side : {0u, 1u}) pair_at_[end(pair, side) * degree + colour] = pair;
  }

  // Both ends have a colour to spare. If it is not the same one, the path from the right end along
  // these two colours swaps them; it cannot come to the left end, which has no edge to arrive by.
  void insert(std::uint32_t pair, std::size_t degree) {
    const auto* const left = &pair_at_[end(pair, 0) * degree];
    const auto* const right = &pair_at_[end(pair, 1) * degree];
    std::size_t free_left = degree, free_right = degree;
    for (std::size_t colour = 0; colour < degree; ++colour) {
      if (left[colour] == kNone && right[colour] == kNone) return put(pair, colour, degree);
      if (left[colour] == kNone && free_left == degree) free_left = colour;
      if (right[colour] == kNone && free_right == degree) free_right = colour;
    }
    Side side = 1;
    std::size_t taken = free_left, other = free_right;
    for (std::uint32_t at = pair; at != kNone; side = 1 - side, std::swap(taken, other)) {
      auto* const row = &pair_at_[end(at, side) * degree];
      at = row[taken];
      std::swap(row[taken], row[other]);
    }
    put(pair, free_left, degree);
  }

  static constexpr std::uint8_t kUnknown = 2;
  std::vector<BipartiteEdge> pairs_;
  std::size_t num_left_, num_vertices_;
  std::vector<std::uint32_t> slot_of_;  // by pair; only within joined()
  // Of the split at hand: pairs with an odd edge; the edges that each is linked to, by side; which
  // half each goes to; by vertex, the edge without a partner.
  std::vector<std::uint32_t> odd_;
  std::vector<std::array<std::uint32_t, 2>> partners_;
  std::vector<std::uint8_t> half_of_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> pair_at_;  // by vertex and colour
};

// Neighbours on one side that together have no more edges than the largest degree become one
// vertex. Colours that are proper for this vertex are proper for each of them. Any two vertices
// that follow each other then have more edges than the largest degree, so tables by vertex and
// colour are hardly larger than the graph (after Cole, Ost and Schirra, 2001).
struct JoinedSide {
  std::vector<std::uint32_t> vertex_of;
  std::uint32_t num_vertices = 0;
};
JoinedSide join_vertices(const std::vector<std::uint32_t>& degrees, std::uint32_t largest) {
  JoinedSide side;
  std::uint32_t load = largest;
  for (const std::uint32_t degree : degrees) {
    if (degree > largest - load || side.num_vertices == 0) {
      ++side.num_vertices;
      load = 0;
    }
    load += degree;
    side.vertex_of.push_back(side.num_vertices - 1);
  }
  return side;
}

// Indices of edges sorted by one of their ends; edges with the same end keep their order.
std::vector<std::uint32_t> sorted_by(const std::vector<std::uint32_t>& order,
                                     std::span<const BipartiteEdge> edges,
                                     std::uint32_t BipartiteEdge::* end, const JoinedSide& side) {
  std::vector<std::uint32_t> next(std::size_t{side.num_vertices} + 1, 0), sorted(order.size());
  for (const BipartiteEdge& edge : edges) ++next[side.vertex_of[edge.*end] + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const std::uint32_t i : order) sorted[next[side.vertex_of[edges[i].*end]]++] = i;
  return sorted;
}

}  // namespace

EdgeColouring colour_edges(std::span<const BipartiteEdge> edges, std::uint32_t num_left,
                           std::uint32_t num_right) {
  EdgeColouring result;
  if (edges.empty()) return result;
  std::vector<std::uint32_t> left_degrees(num_left, 0), right_degrees(num_right, 0);
  for (const BipartiteEdge& edge : edges) {
    ++left_degrees[edge.left];
    ++right_degrees[edge.right];
  }
  result.num_colours = std::max(std::ranges::max(left_degrees), std::ranges::max(right_degrees));
  const JoinedSide left = join_vertices(left_degrees, result.num_colours);
  const JoinedSide right = join_vertices(right_degrees, result.num_colours);

  std::vector<std::uint32_t> order(edges.size());
  std::iota(order.begin(), order.end(), 0u);
  order = sorted_by(order, edges, &BipartiteEdge::right, right);
  order = sorted_by(order, edges, &BipartiteEdge::left, left);
  std::vector<BipartiteEdge> pairs;
  std::vector<std::size_t> next;  // by pair: its first edge in `order` without a colour
  Multigraph graph;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const BipartiteEdge& edge = edges[order[at]];
    const BipartiteEdge pair{left.vertex_of[edge.left], right.vertex_of[edge.right]};
    if (pairs.empty() || pairs.back().left != pair.left || pairs.back().right != pair.right) {
      graph.push_back({static_cast<std::uint32_t>(pairs.size()), 0});
      pairs.push_back(pair);
      next.push_back(at);
    }
    ++graph.back().count;
  }

  PairColouring colouring(std::move(pairs), left.num_vertices, right.num_vertices);
  const std::vector<Matching> found = colouring.colour(graph, result.num_colours);
  std::vector<std::uint32_t> by_size(found.size());
  std::iota(by_size.begin(), by_size.end(), 0u);
  std::ranges::sort(by_size, {}, [&](std::uint32_t i) { return std::pair(~found[i].size(), i); });
  result.colours.resize(edges.size());
  for (std::uint32_t colour = 0; colour < by_size.size(); ++colour) {
    for (const std::uint32_t pair : found[by_size[colour]]) {
      result.colours[order[next[pair]++]] = colour;
    }
  }
  return result;
}

}  // namespace cinch::rt
