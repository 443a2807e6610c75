// Random draws: known answers of Philox, the layout that docs/language_bits.md fixes, statistics
// that a broken generator misses by far, and the bulk forms compared with the forms by index.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "runtime/core/lang.h"

namespace cinch {
namespace {

using lang::Block;
using lang::DrawStream;
using lang::u16;
using lang::u32;
using lang::u64;

Block<u32> philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
  return lang::philox(c0, c1, c2, c3, k0, k1);
}

void expect_words(const Block<u32>& found, std::vector<u32> expected) {
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(found.word[i], expected[i]);
}

TEST(LangRandomTest, PhiloxKnownAnswers) {
  expect_words(philox(0, 0, 0, 0, 0, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_words(philox(~0u, ~0u, ~0u, ~0u, ~0u, ~0u),
               {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_words(philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0),
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

constexpr u32 kDraw[8] = {0x11111111, 0x22222222, 0x33333333, 0x44, 5, 6, 7, 0};

// Straight from docs/language_bits.md.
TEST(LangRandomTest, KeyAndCounterAreAsDocumented) {
  for (bool shared : {false, true}) {
    const Block<u32> key =
        philox(5, 6, shared ? 0xffffffff : 7, 0x636e6368, 0x11111111, 0x22222222);
    const DrawStream stream = lang::draw_stream(kDraw, 9, shared);
    for (u32 index : {0u, 1u, 2u, 3u, 4u, 1023u, 0xffffffffu}) {
      const Block<u32> block = philox(index / 4, 9, 0x33333333, 0x4400, key.word[0], key.word[1]);
      EXPECT_EQ(lang::random_bits(stream, index), block.word[index % 4]);
      EXPECT_EQ(lang::random(stream, index),
                static_cast<float>(block.word[index % 4] >> 8) * 0x1p-24f);
      const Block<u32> halves = philox(index / 8, 9, 0x33333333, 0x4401, key.word[0], key.word[1]);
      const u32 half = halves.word[index / 2 % 4] >> (index % 2 * 16) & 0xffff;
      EXPECT_EQ(lang::random_half(stream, lang::kHalfPlane, index), half);
    }
  }
}

TEST(LangRandomTest, EveryPartOfTheCounterMatters) {
  const DrawStream base = lang::draw_stream(kDraw, 9, false);
  for (int word = 0; word < 7; ++word) {
    u32 other[8];
    std::copy(kDraw, kDraw + 8, other);
    other[word] += 1;
    EXPECT_NE(lang::random_bits(lang::draw_stream(other, 9, false), 0u),
              lang::random_bits(base, 0u))
        << word;
    // Shared draws use everything except the worker.
    const bool equal = lang::random_bits(lang::draw_stream(other, 9, true), 0u) ==
                       lang::random_bits(lang::draw_stream(kDraw, 9, true), 0u);
    EXPECT_EQ(equal, word == lang::kWorker) << word;
  }
  EXPECT_NE(lang::random_bits(lang::draw_stream(kDraw, 10, false), 0u),
            lang::random_bits(base, 0u));
}

TEST(LangRandomTest, NormalsHaveTheirMoments) {
  const DrawStream stream = lang::draw_stream(kDraw, 1, false);
  constexpr u32 kCount = 1 << 20;
  double sum = 0, squares = 0, fourth = 0, products = 0, most = 0;
  float before = 0;
  for (u32 i = 0; i < kCount; ++i) {
    const float z = lang::normal(stream, i);
    sum += z;
    squares += double{z} * z;
    fourth += std::pow(z, 4);
    products += double{z} * before;
    most = std::max<double>(most, std::abs(z));
    before = z;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.005);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3, 0.05);
  EXPECT_NEAR(products / kCount, 0, 0.005);
  EXPECT_GT(most, 4.3);
  EXPECT_LT(most, 6.8);
}

TEST(LangRandomTest, NormalIsBoxMullerOfTheBlocksWords) {
  const DrawStream stream = lang::draw_stream(kDraw, 2, false);
  for (u32 i = 0; i < 1000; i += 2) {
    const double u = lang::random_bits(stream, i) * 0x1p-32 + 0x1p-33;
    const double angle = 2 * M_PI * lang::random(stream, i + 1);
    EXPECT_NEAR(lang::normal(stream, i), std::sqrt(-2 * std::log(u)) * std::cos(angle), 3e-6);
    EXPECT_NEAR(lang::normal(stream, i + 1), std::sqrt(-2 * std::log(u)) * std::sin(angle), 3e-6);
  }
}

TEST(LangRandomTest, StochasticRoundComparesThirtyTwoBits) {
  const DrawStream stream = lang::draw_stream(kDraw, 3, false);
  for (u32 i = 0; i < 20000; ++i) {
    const u32 first = lang::random_half(stream, lang::kHalfPlane, i);
    const u32 second = lang::random_half(stream, lang::kTiePlane, i);
    const double u = first * 0x1p-16 + second * 0x1p-32;
    // Fractions close to the draw itself, so that ties occur always.
    for (double fraction : {u, u + 0x1p-40, u + 0x1p-32, u - 0x1p-33, first * 0x1p-16, 0.25}) {
      if (fraction < 0 || fraction >= 1) continue;
      const double x = 3 + fraction;
      EXPECT_EQ(lang::stochastic_round(x, stream, i), u < x - 3 ? 4 : 3) << i;
      EXPECT_EQ(lang::stochastic_round(-x, stream, i), u < x - 3 ? -4 : -3) << i;
    }
  }
  EXPECT_EQ(lang::stochastic_round(5.0f, stream, 1u), 5.0f);
  EXPECT_EQ(lang::stochastic_round(INFINITY, stream, 1u), INFINITY);
  EXPECT_TRUE(std::isnan(lang::stochastic_round(NAN, stream, 1u)));
  EXPECT_TRUE(std::signbit(lang::stochastic_round(-0.0f, stream, 1u)));
}

TEST(LangRandomTest, StochasticRoundIsUnbiased) {
  const DrawStream stream = lang::draw_stream(kDraw, 4, false);
  for (float x : {0.1f, -0.1f, 2.75f, 1e-3f}) {
    double sum = 0;
    constexpr u32 kCount = 1 << 18;
    for (u32 i = 0; i < kCount; ++i) sum += lang::stochastic_round(x, stream, i);
    EXPECT_NEAR(sum / kCount, x, 4.5 * 0.5 / std::sqrt(double{kCount})) << x;
  }
}

TEST(LangRandomTest, RandomIndexIsAPermutationForEverySize) {
  for (u64 size : {1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 100, 1000, 1023, 1025, 65536, 65537, 100003}) {
    const auto permutation = lang::index_permutation(lang::draw_stream(kDraw, 5, true), size);
    std::vector<bool> seen(size, false);
    for (u32 j = 0; j < size; ++j) {
      const u32 index = lang::random_index(permutation, j);
      ASSERT_LT(index, size);
      ASSERT_FALSE(seen[index]) << size << ": " << index << " twice";
      seen[index] = true;
    }
  }
  const auto whole = lang::index_permutation(lang::draw_stream(kDraw, 5, true), u64{1} << 32);
  EXPECT_NE(lang::random_index(whole, 0u), lang::random_index(whole, 0xffffffffu));
  const auto none = lang::index_permutation(lang::draw_stream(kDraw, 5, true), 0);
  EXPECT_EQ(lang::random_index(none, 77u), 0u);
}

// Over many keys every index occurs at the first places equally often, and so do pairs.
TEST(LangRandomTest, RandomIndexIsUniform) {
  for (u32 size : {3u, 5u, 8u, 10u, 16u}) {
    std::vector<double> first(size, 0);
    std::map<std::pair<u32, u32>, double> pairs;
    constexpr u32 kKeys = 40000;
    for (u32 key = 0; key < kKeys; ++key) {
      const auto permutation = lang::index_permutation(lang::draw_stream(kDraw, key, true), size);
      const u32 a = lang::random_index(permutation, 0u), b = lang::random_index(permutation, 1u);
      first[a] += 1;
      pairs[{a, b}] += 1;
    }
    double chi = 0, pair_chi = 0;
    for (double count : first)
      chi += std::pow(count - double{kKeys} / size, 2) / (double{kKeys} / size);
    const double expected = double{kKeys} / (size * (size - 1));
    for (const auto& [pair, count] : pairs) pair_chi += std::pow(count - expected, 2) / expected;
    const double freedom = size - 1, pair_freedom = size * (size - 1) - 1;
    EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom)) << size;
    EXPECT_LT(pair_chi, pair_freedom + 5 * std::sqrt(2 * pair_freedom)) << size;
    EXPECT_EQ(pairs.size(), std::size_t{size} * (size - 1));
  }
}

template <int W>
void expect_fills_match(u32 first, u32 count) {
  const DrawStream stream = lang::draw_stream(kDraw, 6, false);
  std::vector<u32> words(count + 1, 0xabcdabcd);
  std::vector<u16> halves(count + 1, 0xabcd);
  lang::fill_random_bits<W>(stream, first, count, words.data());
  lang::fill_random_halves<W>(stream, first, count, halves.data());
  for (u32 i = 0; i < count; ++i) {
    ASSERT_EQ(words[i], lang::random_bits(stream, first + i)) << W << " " << first << " " << i;
    ASSERT_EQ(halves[i], lang::random_half(stream, lang::kHalfPlane, first + i));
  }
  EXPECT_EQ(words[count], 0xabcdabcd);
  EXPECT_EQ(halves[count], 0xabcd);
}

TEST(LangRandomTest, BulkFormsGiveTheSameDraws) {
  for (u32 first : {0u, 1u, 4u, 7u, 8u, 1000u}) {
    for (u32 count : {0u, 1u, 5u, 64u, 130u, 1024u}) {
      expect_fills_match<4>(first, count);
      expect_fills_match<8>(first, count);
      expect_fills_match<16>(first, count);
    }
  }
}

TEST(LangRandomTest, HalfRunsAreInOrder) {
  using V = lang::Vec<u32, 8>;
  const DrawStream stream = lang::draw_stream(kDraw, 6, false);
  V run[8];
  lang::random_half_run(stream, 3, run);
  for (u32 i = 0; i < 64; ++i) {
    EXPECT_EQ(run[i / 8][i % 8], lang::random_half(stream, lang::kHalfPlane, 24 + i));
  }
}

}  // namespace
}  // namespace cinch
