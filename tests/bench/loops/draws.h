// The language's counter-based draws (docs/language_bits.md, Random draws) as loops over counters.
#pragma once
#include "loops.h"

namespace loops {

/// The draws of a compressor's first site, for seed 0, tensor 0, piece 0, worker 0.
struct Draws {
  explicit Draws(std::uint64_t step);
  std::uint32_t key[2];
  std::uint32_t step_words[2];
};

enum Plane : std::uint32_t { kHalfPlane = 1, kTiePlane = 2, kPermutationPlane = 3 };

/// Philox4x32-10. Words are held in 64 bits, like products: vectors then need no conversions.
[[gnu::always_inline]] inline void philox(std::uint64_t (&c)[4], std::uint32_t key0,
                                          std::uint32_t key1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xd2511f53u * (c[0] & 0xffffffffu);
    const std::uint64_t product2 = 0xcd9e8d57u * (c[2] & 0xffffffffu);
    c[0] = product2 >> 32 ^ c[1] ^ key0;
    c[1] = product2;
    c[2] = product0 >> 32 ^ c[3] ^ key1;
    c[3] = product0;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

/// The four words of a block.
[[gnu::always_inline]] inline void draw_block(const Draws& draws, Plane plane, std::uint32_t block,
                                              std::uint32_t* __restrict words) {
  std::uint64_t c[4];
  c[0] = block;
  c[1] = 0;  // the site
  c[2] = draws.step_words[0];
  c[3] = std::uint32_t{draws.step_words[1] << 8 | plane};
  philox(c, draws.key[0], draws.key[1]);
  words[0] = static_cast<std::uint32_t>(c[0]);
  words[1] = static_cast<std::uint32_t>(c[1]);
  words[2] = static_cast<std::uint32_t>(c[2]);
  words[3] = static_cast<std::uint32_t>(c[3]);
}

/// The 16-bit draws of a tile's elements; `first` is a multiple of 8.
inline void draw_halves(const Draws& draws, std::size_t first, std::uint32_t (&words)[kTile / 2]) {
  const Draws own = draws;
#pragma clang loop vectorize(enable)
  for (std::size_t b = 0; b < kTile / 8; ++b) {
    draw_block(own, kHalfPlane, static_cast<std::uint32_t>(first / 8 + b), words + 4 * b);
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

/// The same as codes: code(i, rounded magnitude) for each element; codes after `count` are 0.
template <class Count, class Code>
inline void round_to_codes(const Draws& draws, std::size_t first, Count count,
                           const float* __restrict magnitude, Code code,
                           std::uint8_t (&codes)[kTile]) {
  std::int32_t rounded[kTile];
  round_at_random(draws, first, count, magnitude, rounded);
  for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(code(i, rounded[i]));
  __builtin_memset(codes + count, 0, kTile - count);
}

}  // namespace loops
