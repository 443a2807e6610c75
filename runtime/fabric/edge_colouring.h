// Alone: a problem of graphs, which knows nothing of fabrics.
//
// Colours the edges of a bipartite multigraph so that edges that share a vertex have different
// colours, with as many colours as the largest degree. König (1916) proved that these suffice.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace cinch::rt {

struct BipartiteEdge {
  std::uint32_t left = 0, right = 0;
};

struct EdgeColouring {
  std::uint32_t num_colours = 0;       // the largest degree
  std::vector<std::uint32_t> colours;  // by edge; colours of many edges come first
};

/// Vertices are numbered from 0 on either side. Takes O(E log D + V) time for Euler splits of E
/// edges with largest degree D, and flips alternating paths for at most E / D edges at each of
/// log D sizes. Takes O(E + V) memory, also where degrees are very different. Deterministic.
EdgeColouring colour_edges(std::span<const BipartiteEdge> edges, std::uint32_t num_left,
                           std::uint32_t num_right);

}  // namespace cinch::rt
