#include "runtime/fabric/edge_colouring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace cinch::rt {
namespace {

using Edges = std::vector<BipartiteEdge>;

std::uint32_t largest_degree(const Edges& edges) {
  std::vector<std::uint32_t> ends;
  for (const BipartiteEdge& edge : edges) {
    ends.push_back(2 * edge.left);
    ends.push_back(2 * edge.right + 1);
  }
  std::ranges::sort(ends);
  std::uint32_t most = 0;
  for (auto at = ends.begin(); at != ends.end();) {
    const auto end = std::upper_bound(at, ends.end(), *at);
    most = std::max(most, static_cast<std::uint32_t>(end - at));
    at = end;
  }
  return most;
}

// As many colours as the largest degree, and no vertex has one twice.
void expect_proper(const Edges& edges, std::uint32_t num_left, std::uint32_t num_right) {
  const EdgeColouring colouring = colour_edges(edges, num_left, num_right);
  ASSERT_EQ(colouring.num_colours, largest_degree(edges));
  ASSERT_EQ(colouring.colours.size(), edges.size());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> left, right;
  std::vector<std::size_t> sizes(colouring.num_colours, 0);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    ASSERT_LT(colouring.colours[i], colouring.num_colours);
    left.emplace_back(edges[i].left, colouring.colours[i]);
    right.emplace_back(edges[i].right, colouring.colours[i]);
    ++sizes[colouring.colours[i]];
  }
  std::ranges::sort(left);
  std::ranges::sort(right);
  EXPECT_EQ(std::ranges::adjacent_find(left), left.end());
  EXPECT_EQ(std::ranges::adjacent_find(right), right.end());
  EXPECT_TRUE(std::ranges::is_sorted(sizes, std::greater()));
  EXPECT_EQ(colour_edges(edges, num_left, num_right).colours, colouring.colours);
}

TEST(EdgeColouring, NoEdges) {
  EXPECT_EQ(colour_edges({}, 3, 4).num_colours, 0u);
  EXPECT_EQ(colour_edges({}, 0, 0).num_colours, 0u);
}

TEST(EdgeColouring, EverySmallGraph) {
  // All multigraphs of three vertices on either side with up to two edges between any two.
  for (std::uint32_t code = 0; code < 19683; ++code) {
    Edges edges;
    std::uint32_t rest = code;
    for (std::uint32_t pair = 0; pair < 9; ++pair, rest /= 3) {
      for (std::uint32_t i = 0; i < rest % 3; ++i) edges.push_back({pair / 3, pair % 3});
    }
    expect_proper(edges, 3, 3);
    ASSERT_FALSE(HasFailure()) << "graph " << code;
  }
}

TEST(EdgeColouring, RegularGraphsOfEveryDegree) {
  for (std::uint32_t degree = 1; degree <= 70; ++degree) {
    Edges edges;
    for (std::uint32_t left = 0; left < 13; ++left) {
      for (std::uint32_t i = 0; i < degree; ++i) edges.push_back({left, (left * 5 + i * i) % 13});
    }
    expect_proper(edges, 13, 13);
    ASSERT_FALSE(HasFailure()) << "degree " << degree;
  }
}

TEST(EdgeColouring, RandomMultigraphs) {
  std::mt19937 random(11);
  for (int turn = 0; turn < 1500; ++turn) {
    const std::uint32_t num_left = 1 + random() % 20, num_right = 1 + random() % 20;
    // Squares make low numbers more frequent, so that degrees differ.
    const auto skewed = [&](std::uint32_t end) {
      const std::uint64_t at = random() % (std::uint64_t{end} * end);
      std::uint32_t root = 0;
      while (std::uint64_t{root + 1} * (root + 1) <= at) ++root;
      return turn % 2 == 0 ? root : static_cast<std::uint32_t>(at % end);
    };
    Edges edges(1 + random() % 300);
    for (BipartiteEdge& edge : edges) edge = {skewed(num_left), skewed(num_right)};
    expect_proper(edges, num_left, num_right);
    ASSERT_FALSE(HasFailure()) << "turn " << turn;
  }
}

TEST(EdgeColouring, ManyParallelEdges) {
  Edges edges(4097, {0, 0});
  edges.insert(edges.end(), 1001, {0, 1});
  edges.insert(edges.end(), 2003, {1, 0});
  edges.insert(edges.end(), 3000, {1, 1});
  expect_proper(edges, 2, 2);
}

// A table by vertex and colour would have 2 * 10^10 entries.
TEST(EdgeColouring, OneVertexWithAllEdgesTakesNoMemory) {
  Edges edges;
  for (std::uint32_t left = 0; left < 100'000; ++left) edges.push_back({left, 7});
  expect_proper(edges, 100'000, 100'000);
}

TEST(EdgeColouring, ALargeOddDegree) {
  std::mt19937 random(3);
  std::vector<std::uint32_t> to(500);
  for (std::uint32_t i = 0; i < to.size(); ++i) to[i] = i;
  Edges edges;
  for (int i = 0; i < 127; ++i) {
    std::ranges::shuffle(to, random);
    for (std::uint32_t left = 0; left < to.size(); ++left) edges.push_back({left, to[left]});
  }
  expect_proper(edges, 500, 500);
}

}  // namespace
}  // namespace cinch::rt
