// Codes of 1, 2 and 4 bits, least significant bit first. A tile's codes are bytes; codes after
// `count` are packed as 0.
#pragma once
#include "loops.h"

namespace loops {

/// Four codes to a byte.
inline void pack_pairs(const std::uint8_t (&codes)[kTile], std::size_t count,
                       std::uint8_t* __restrict out) {
  std::uint32_t words[kTile / 4];
  __builtin_memcpy(words, codes, sizeof words);
  for (std::size_t i = 0; i < divide_up(count, 4); ++i) {
    const std::uint32_t x = words[i];
    out[i] = static_cast<std::uint8_t>(x | x >> 6 | x >> 12 | x >> 18);
  }
}

/// Two codes to a byte.
inline void pack_nibbles(const std::uint8_t (&codes)[kTile], std::size_t count,
                         std::uint8_t* __restrict out) {
  std::uint16_t pairs[kTile / 2];
  __builtin_memcpy(pairs, codes, sizeof pairs);
  for (std::size_t i = 0; i < divide_up(count, 2); ++i) {
    out[i] = static_cast<std::uint8_t>(pairs[i] | pairs[i] >> 4);
  }
}

/// The sign of each element, as bits of words.
template <class Count>
inline void pack_signs(const float* __restrict x, Count count, std::uint32_t* __restrict out) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    std::uint32_t word = 0;
#pragma clang loop vectorize(enable) interleave_count(4)
    for (std::uint32_t j = 0; j < 32; ++j) word |= x[i + j] < 0.0f ? 1u << j : 0u;
    out[i / 32] = word;
  }
  if (i == count) return;
  std::uint32_t word = 0;
  for (std::uint32_t j = 0; i + j < count; ++j) word |= x[i + j] < 0.0f ? 1u << j : 0u;
  out[i / 32] = word;
}

/// One of two values for each bit.
template <class Count>
inline void unpack_signs(const std::uint32_t* __restrict words, Count count, float if_set,
                         float if_clear, float* __restrict out) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const std::uint32_t word = words[i / 32];
#pragma clang loop vectorize(enable) interleave_count(4)
    for (std::uint32_t j = 0; j < 32; ++j) out[i + j] = (word & 1u << j) != 0 ? if_set : if_clear;
  }
  for (; i < count; ++i) out[i] = (words[i / 32] & 1u << i % 32) != 0 ? if_set : if_clear;
}

/// value(code) for `count` codes of `Bits` bits each, read as whole words.
template <int Bits, class Count, class F>
inline void unpack(const std::uint32_t* __restrict words, Count count, float* __restrict out,
                   F value) {
  constexpr std::size_t kPerWord = 32 / Bits;
  std::size_t i = 0;
  for (; i + kPerWord <= count; i += kPerWord) {
    const std::uint32_t word = words[i / kPerWord];
#pragma clang loop vectorize(enable)
    for (std::uint32_t j = 0; j < kPerWord; ++j) out[i + j] = value(word >> (Bits * j));
  }
  for (; i < count; ++i) out[i] = value(words[i / kPerWord] >> (i % kPerWord * Bits));
}

}  // namespace loops
