// qsgd of 4 bits in buckets of 512. The payload: the norms of all buckets, then the codes.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "draws.h"
#include "packing.h"

namespace loops {
namespace {

constexpr std::size_t kBucket = 512;
constexpr float kLevels = 7;

float* norms_of(const Job& job) {
  return field_of<float>(job);
}
std::uint8_t* codes_of(const Job& job) {
  return reinterpret_cast<std::uint8_t*>(norms_of(job) + divide_up(job.n, 2 * kBucket) * 2);
}

// The bucket's norm, times `unit`, a power of two that keeps squares from overflow and underflow.
template <class Count>
float norm_of(const float* __restrict g, Count count, float unit) {
  float squares = 0;
#pragma clang loop vectorize(enable) interleave_count(4)
  for (std::size_t i = 0; i < count; ++i) {
    const float y = g[i] * unit;
    squares += y * y;
  }
  return std::min(std::sqrt(squares), kLargest * unit);
}

float unit_for(float largest) {
  return largest > 0x1p40f ? 0x1p-88f : largest < 0x1p-40f ? 0x1p88f : 1.0f;
}

// Norm and places of one bucket. Gives the largest bits of the magnitudes.
template <class Count>
std::uint32_t scale_bucket(const float* __restrict g, Count count, float& norm,
                           float* __restrict place) {
  const std::uint32_t largest = largest_bits(g, count);
  const float unit = unit_for(float_of(largest));
  const float scaled = norm_of(g, count, unit);
  norm = scaled / unit;
  const float per_norm = scaled == 0.0f ? 0.0f : kLevels / scaled;
#pragma clang loop vectorize(enable)
  for (std::size_t i = 0; i < count; ++i) {
    const float x = std::fabs(g[i] * unit) * per_norm;
    place[i] = x < kLevels ? x : kLevels;
  }
  return largest;
}

}  // namespace

extern "C" {

int qsgd_encode(Job& job) {
  std::atomic<std::uint32_t> non_finite{0};
  const Draws draws(job.step);
  parallel_tiles(job, [&](std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    float place[kTile];
    std::uint8_t codes[kTile];
    for (std::size_t b = 0; b < count; b += kBucket) {
      float& norm = norms_of(job)[(at + b) / kBucket];
      const std::size_t rest = count - b;
      const std::uint32_t largest =
          rest >= kBucket
              ? scale_bucket(g + b, std::integral_constant<std::size_t, kBucket>{}, norm, place + b)
              : scale_bucket(g + b, rest, norm, place + b);
      if (largest >= kInfinity) non_finite = kInfinity;
    }
    const auto code = [g](std::size_t i, std::int32_t rounded) {
      return (g[i] < 0.0f ? -rounded : rounded) & 15;
    };
    round_to_codes(draws, at, count, place, code, codes);
    pack_nibbles(codes, count, codes_of(job) + at / 2);
  });
  return mark_non_finite(job, non_finite);
}

int qsgd_decode(Job& job) {
  if (decode_marked(job)) return 0;
  const auto* words = reinterpret_cast<const std::uint32_t*>(codes_of(job));
  return decode_tiles(job, [&](std::size_t at, auto count) {
    for (std::size_t b = 0; b < count; b += kBucket) {
      const float scale = norms_of(job)[(at + b) / kBucket] / kLevels;
      const std::size_t rest = count - b;
      const auto value = [scale](std::uint32_t code) {
        return static_cast<float>(static_cast<std::int32_t>(code << 28) >> 28) * scale;
      };
      const std::uint32_t* from = words + (at + b) / 8;
      float* out = job.out + at + b;
      if (rest >= kBucket) {
        unpack<4>(from, std::integral_constant<std::size_t, kBucket>{}, out, value);
      } else {
        unpack<4>(from, rest, out, value);
      }
    }
  });
}

}  // extern "C"

}  // namespace loops
