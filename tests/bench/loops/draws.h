// The language's counter-based draws (docs/language_bits.md, Random draws) as loops over counters.
#pragma once
#include "loops.h"

namespace loops {

/// The draws of the first site of a compressor, of seed 0, tensor 0, piece 0, worker 0.
struct Draws {
  explicit Draws(std::uint64_t step);
  std::uint32_t key[2];
  std::uint32_t step_words[2];
};

enum Plane : std::uint32_t { kHalfPlane = 1, kTiePlane = 2, kPermutationPlane = 3 };

inline void multiply(std::uint32_t a, std::uint32_t b, std::uint32_t& high, std::uint32_t& low) {
  const std::uint64_t product = std::uint64_t{a} * b;
  high = static_cast<std::uint32_t>(product >> 32);
  low = static_cast<std::uint32_t>(product);
}

/// Philox4x32-10.
inline void philox(std::uint32_t (&c)[4], std::uint32_t key0, std::uint32_t key1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    std::uint32_t high0, low0, high2, low2;
    multiply(c[0], 0xd2511f53u, high0, low0);
    multiply(c[2], 0xcd9e8d57u, high2, low2);
    c[0] = high2 ^ c[1] ^ key0;
    c[1] = low2;
    c[2] = high0 ^ c[3] ^ key1;
    c[3] = low0;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

/// The four words of a block.
inline void draw_block(const Draws& draws, Plane plane, std::uint32_t block,
                       std::uint32_t (&words)[4]) {
  words[0] = block;
  words[1] = 0;  // the site
  words[2] = draws.step_words[0];
  words[3] = draws.step_words[1] << 8 | plane;
  philox(words, draws.key[0], draws.key[1]);
}

/// The 16-bit draws of a tile's elements; `first` is a multiple of 8.
inline void draw_halves(const Draws& draws, std::size_t first, std::uint32_t (&words)[kTile / 2]) {
#pragma clang loop vectorize(enable)
  for (std::uint32_t b = 0; b < kTile / 8; ++b) {
    std::uint32_t block[4];
    draw_block(draws, kHalfPlane, static_cast<std::uint32_t>(first / 8) + b, block);
    words[4 * b] = block[0];
    words[4 * b + 1] = block[1];
    words[4 * b + 2] = block[2];
    words[4 * b + 3] = block[3];
  }
}

/// 16 more bits for one element.
inline std::uint32_t draw_tie(const Draws& draws, std::size_t element) {
  std::uint32_t block[4];
  draw_block(draws, kTiePlane, static_cast<std::uint32_t>(element / 8), block);
  return block[element / 2 % 4] >> (element % 2 * 16) & 0xffff;
}

/// Rounds the tile's magnitudes to one of the two whole numbers around each, without bias.
template <class Count>
inline void round_at_random(const Draws& draws, std::size_t first, Count count,
                            const float* __restrict magnitude, std::int32_t* __restrict rounded) {
  std::uint32_t words[kTile / 2];
  draw_halves(draws, first, words);
  std::uint16_t half[kTile];
  __builtin_memcpy(half, words, sizeof half);
  int ties = 0;
#pragma clang loop vectorize(enable)
  for (std::size_t i = 0; i < count; ++i) {
    const auto whole = static_cast<std::int32_t>(magnitude[i]);
    const float missing =
        (magnitude[i] - static_cast<float>(whole)) * 65536.0f - static_cast<float>(half[i]);
    rounded[i] = whole + (missing >= 1.0f ? 1 : 0);
    ties |= (missing > 0.0f ? 1 : 0) & (missing < 1.0f ? 1 : 0);
  }
  if (ties == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    const auto whole = static_cast<std::int32_t>(magnitude[i]);
    const float missing =
        (magnitude[i] - static_cast<float>(whole)) * 65536.0f - static_cast<float>(half[i]);
    if (missing <= 0.0f || missing >= 1.0f) continue;
    const bool up = static_cast<float>(draw_tie(draws, first + i)) < missing * 65536.0f;
    rounded[i] = whole + (up ? 1 : 0);
  }
}

}  // namespace loops
