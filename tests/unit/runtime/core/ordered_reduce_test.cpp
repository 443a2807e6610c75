// The fixed order of reductions and scans, compared with hand-made orders of tracked expressions.
#include "runtime/core/numbers/ordered_reduce.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace cinch {
namespace {

std::string paren(const std::string& a, const std::string& b) {
  return "(" + a + b + ")";
}
std::string name(std::size_t i) {
  return std::string(1, static_cast<char>('a' + i));
}

std::optional<std::string> reduce_names(std::size_t count, std::vector<std::size_t> missing = {}) {
  return ordered_reduce<std::string>(
      count,
      [&](std::size_t i) -> std::optional<std::string> {
        if (std::find(missing.begin(), missing.end(), i) != missing.end()) return std::nullopt;
        return name(i);
      },
      paren);
}

TEST(OrderedReduceTest, SmallArraysFoldColumnsByHalves) {
  EXPECT_EQ(reduce_names(0), std::nullopt);
  EXPECT_EQ(reduce_names(1), "a");
  EXPECT_EQ(reduce_names(2), "(ab)");
  EXPECT_EQ(reduce_names(4), "((ac)(bd))");
  EXPECT_EQ(reduce_names(5), "(((ae)c)(bd))");
}

TEST(OrderedReduceTest, MissingElementsKeepTheirPlace) {
  EXPECT_EQ(reduce_names(4, {0}), "(c(bd))");
  EXPECT_EQ(reduce_names(4, {1, 3}), "(ac)");
  EXPECT_EQ(reduce_names(3, {0, 1, 2}), std::nullopt);
}

TEST(OrderedReduceTest, ColumnsTakeInTheirRowsInOrder) {
  // Only elements 0, 128, 256 and 1: column 0 folds three rows before column 1 joins it.
  const auto at = [](std::size_t i) -> std::optional<std::string> {
    if (i == 0) return "a";
    if (i == 128) return "b";
    if (i == 256) return "c";
    if (i == 1) return "d";
    return std::nullopt;
  };
  EXPECT_EQ(ordered_reduce<std::string>(300, at, paren), "(((ab)c)d)");
}

TEST(OrderedReduceTest, TileResultsReduceByTheSameRule) {
  // One element in each of five tiles.
  const auto at = [](std::size_t i) -> std::optional<std::string> {
    return i % kTileElems == 7 ? std::optional(name(i / kTileElems)) : std::nullopt;
  };
  EXPECT_EQ(ordered_reduce<std::string>(5 * kTileElems, at, paren), "(((ae)c)(bd))");
  // A tile without elements keeps its place.
  const auto holes = [&](std::size_t i) { return i / kTileElems == 2 ? std::nullopt : at(i); };
  EXPECT_EQ(ordered_reduce<std::string>(5 * kTileElems, holes, paren), "((ae)(bd))");
}

TEST(OrderedReduceTest, SumsOfManyTilesAreRight) {
  const std::size_t count = kTileElems * kTileElems + 12345;
  const auto sum = ordered_reduce<std::uint64_t>(
      count, [](std::size_t i) { return std::optional<std::uint64_t>(i); },
      [](std::uint64_t a, std::uint64_t b) { return a + b; });
  EXPECT_EQ(sum, std::uint64_t{count} * (count - 1) / 2);
}

TEST(OrderedScanTest, SmallScansDouble) {
  std::vector<std::string> x = {"a", "b", "c", "d", "e"};
  ordered_scan(x, paren);
  EXPECT_EQ(x, (std::vector<std::string>{"a", "(ab)", "(a(bc))", "((ab)(cd))", "(a((bc)(de)))"}));
}

TEST(OrderedScanTest, TileEndsJoinOnTheLeft) {
  std::vector<float> x(3 * kTileElems + 5);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(i + 1);
  std::vector<float> scanned = x;
  const auto add = [](float a, float b) { return a + b; };
  ordered_scan(scanned, add);
  std::vector<float> tiles[4];
  for (std::size_t t = 0; t < 4; ++t) {
    tiles[t].assign(
        x.begin() + static_cast<std::ptrdiff_t>(t * kTileElems),
        t == 3 ? x.end() : x.begin() + static_cast<std::ptrdiff_t>((t + 1) * kTileElems));
    ordered_scan(tiles[t], add);
  }
  const float a = tiles[0].back(), b = tiles[1].back(), c = tiles[2].back();
  // Ends scanned: a, a + b, a + (b + c).
  for (std::size_t j = 0; j < 5; ++j) {
    EXPECT_EQ(scanned[kTileElems + j], a + tiles[1][j]);
    EXPECT_EQ(scanned[2 * kTileElems + j], (a + b) + tiles[2][j]);
    EXPECT_EQ(scanned[3 * kTileElems + j], (a + (b + c)) + tiles[3][j]);
  }
}

TEST(OrderedScanTest, IntegerScansAreExactForManyTiles) {
  std::vector<std::uint64_t> x(kTileElems * kTileElems + 999, 1);
  ordered_scan(x, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], i + 1);
}

}  // namespace
}  // namespace cinch
