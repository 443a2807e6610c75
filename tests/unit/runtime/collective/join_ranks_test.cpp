// The result of each collective on each rank, in every type that ranks join.
#include "runtime/collective/join_ranks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace cinch::rt {
namespace {

template <typename T>
std::span<const std::uint8_t> bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> give(CollectiveInfo collective, DType dtype,
                    const std::vector<std::vector<T>>& ranks, std::uint32_t rank,
                    std::size_t num_out) {
  std::vector<T> out(num_out);
  std::vector<std::span<const std::uint8_t>> inputs;
  for (const auto& each : ranks) inputs.push_back(bytes(each));
  const std::span<std::uint8_t> to(reinterpret_cast<std::uint8_t*>(out.data()),
                                   num_out * sizeof(T));
  const Status status = give_part({collective, dtype, inputs[rank], to}, inputs, rank);
  EXPECT_TRUE(status) << status.error().message;
  return out;
}

constexpr CollectiveInfo all_reduce(RankReduction how) {
  return {CollectiveKind::AllReduce, how};
}

TEST(JoinRanks, SumsFloatsInRankOrder) {
  const std::vector<std::vector<float>> ranks = {{1e8f, 1}, {1, 2}, {-1e8f, 4}};
  const std::vector<float> expected = {(1e8f + 1.0f) - 1e8f, 7};
  EXPECT_EQ(give(all_reduce(RankReduction::Sum), kF32, ranks, 2, 2), expected);
  EXPECT_EQ(give(all_reduce(RankReduction::Mean), kF32, ranks, 0, 2),
            (std::vector<float>{expected[0] / 3, 7.0f / 3}));
}

TEST(JoinRanks, JoinsDoubles) {
  const std::vector<std::vector<double>> ranks = {{1.0}, {1e-17}};
  EXPECT_EQ(give(all_reduce(RankReduction::Sum), kF64, ranks, 0, 1), (std::vector<double>{1.0}));
  EXPECT_EQ(give(all_reduce(RankReduction::Min), kF64, ranks, 0, 1), (std::vector<double>{1e-17}));
}

// As `min` and `max` of the language: NaN takes no part, -0 is below +0.
TEST(JoinRanks, MinimaAndMaximaAreTheLanguages) {
  const float nan = std::nanf("");
  const std::vector<std::vector<float>> ranks = {{nan, 0.0f, -3}, {2, -0.0f, 5}};
  const auto least = give(all_reduce(RankReduction::Min), kF32, ranks, 0, 3);
  EXPECT_EQ(least[0], 2);
  EXPECT_TRUE(std::signbit(least[1]));
  EXPECT_EQ(least[2], -3);
  const auto largest = give(all_reduce(RankReduction::Max), kF32, ranks, 1, 3);
  EXPECT_EQ(largest[0], 2);
  EXPECT_FALSE(std::signbit(largest[1]));
  EXPECT_EQ(largest[2], 5);
}

TEST(JoinRanks, IntegersWrapAtTheirWidth) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(give(all_reduce(RankReduction::Sum), kI32,
                 std::vector<std::vector<std::int32_t>>{{kMost}, {1}}, 0, 1),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()}));
  EXPECT_EQ(give(all_reduce(RankReduction::Max), kU32,
                 std::vector<std::vector<std::uint32_t>>{{1}, {0xffffffffu}}, 0, 1),
            (std::vector<std::uint32_t>{0xffffffffu}));
  // 40 bits stand sign-extended in 64.
  const std::vector<std::vector<std::int64_t>> wide = {{(std::int64_t{1} << 39) - 1}, {1}};
  EXPECT_EQ(give(all_reduce(RankReduction::Sum), *make_int(40), wide, 0, 1),
            (std::vector<std::int64_t>{-(std::int64_t{1} << 39)}));
  const std::vector<std::vector<std::uint64_t>> unsigned_wide = {{(std::uint64_t{1} << 40) - 1},
                                                                 {2}};
  EXPECT_EQ(give(all_reduce(RankReduction::Sum), *make_uint(40), unsigned_wide, 0, 1),
            (std::vector<std::uint64_t>{1}));
}

TEST(JoinRanks, MovesRowsToTheirRanks) {
  const std::vector<std::vector<std::uint16_t>> ranks = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  EXPECT_EQ(give({CollectiveKind::AllGather}, kU16, ranks, 1, 8),
            (std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(give({CollectiveKind::AllToAll}, kU16, ranks, 1, 4),
            (std::vector<std::uint16_t>{3, 4, 7, 8}));
  EXPECT_EQ(give({.kind = CollectiveKind::Broadcast, .root = 1}, kU16, ranks, 0, 4), ranks[1]);
  const std::vector<std::vector<float>> floats = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  EXPECT_EQ(give({CollectiveKind::ReduceScatter, RankReduction::Sum}, kF32, floats, 1, 2),
            (std::vector<float>{10, 12}));
}

TEST(JoinRanks, RefusesWhatNoCheckedProgramHas) {
  const std::vector<std::uint16_t> halves = {1, 2, 3};
  const std::span<const std::uint8_t> inputs[] = {bytes(halves), bytes(halves)};
  std::vector<std::uint8_t> out(6);
  EXPECT_FALSE(give_part({all_reduce(RankReduction::Sum), kF8E4M3, inputs[0], out}, inputs, 0));
  EXPECT_FALSE(give_part({{CollectiveKind::AllGather}, kU16, inputs[0], out}, inputs, 0));
  EXPECT_FALSE(give_part(
      {{CollectiveKind::AllToAll}, kU8, inputs[0].first(5), std::span(out).first(5)}, inputs, 0));
  EXPECT_FALSE(
      give_part({{.kind = CollectiveKind::Broadcast, .root = 2}, kU16, inputs[0], out}, inputs, 0));
}

}  // namespace
}  // namespace cinch::rt
