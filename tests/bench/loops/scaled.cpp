// onebit, ef_sign, minmax, qsgd, terngrad: codes with scales.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "draws.h"
#include "packing.h"

namespace loops {
namespace {

// Count, mean and sum of squared distances of elements.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  void join(const Moments& other) {
    const double total = count + other.count, distance = other.mean - mean;
    if (other.count == 0) return;
    mean += distance * other.count / total;
    squares += other.squares + distance * distance * count * other.count / total;
    count = total;
  }
};

// A task's results for its part of the gradient.
struct Part {
  std::uint32_t largest = 0;  // bits of the magnitude
  std::uint64_t negatives = 0;
  double low_sum = 0, high_sum = 0;
  Moments moments;
  float low = std::numeric_limits<float>::infinity();
  float high = -std::numeric_limits<float>::infinity();
};

Part join(const std::vector<Part>& parts) {
  Part all;
  for (const Part& part : parts) {
    all.largest = std::max(all.largest, part.largest);
    all.negatives += part.negatives;
    all.low_sum += part.low_sum;
    all.high_sum += part.high_sum;
    all.moments.join(part.moments);
    all.low = std::min(all.low, part.low);
    all.high = std::max(all.high, part.high);
  }
  return all;
}

/// tile(part, begin, count) for all tiles, and what the parts join to.
template <class F>
Part gather_parts(const Job& job, F tile) {
  std::vector<Part> parts(num_tasks(job));
  parallel(parts.size(), [&](std::size_t task) {
    Part part;
    each_tile(job, task, [&](std::size_t at, auto count) { tile(part, at, count); });
    parts[task] = part;
  });
  return join(parts);
}

// Assumes no NaN, since parts with NaN are not used: vector minima need that.
template <class Count>
void widen_range(const float* __restrict g, Count count, Part& part) {
#pragma float_control(precise, off)
  float low = part.low, high = part.high;
#pragma clang loop vectorize(enable) interleave_count(4)
  for (std::size_t i = 0; i < count; ++i) {
    low = g[i] < low ? g[i] : low;
    high = g[i] > high ? g[i] : high;
  }
  part.low = low;
  part.high = high;
}

// 0 if the value is too small to have one.
float inverse(float x) {
  return x < 1.2e-38f ? 0.0f : 1.0f / x;
}

float mean_or_zero(double sum, std::uint64_t number) {
  return number == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(number));
}

/// low where the bit is set, else high.
int decode_signs(const Job& job, float low, float high) {
  const auto* words = field_of<std::uint32_t>(job);
  return decode_tiles(job, [&](std::size_t at, auto count) {
    unpack_signs(words + at / 32, count, low, high, job.out + at);
  });
}

// -1, 0 and 1 of two bits, times a scale.
float two_bits(std::uint32_t code, float scale) {
  return static_cast<float>(static_cast<std::int32_t>(code << 30) >> 30) * scale;
}

}  // namespace

extern "C" {

int onebit_encode(Job& job) {
  auto* words = field_of<std::uint32_t>(job);
  const Part all = gather_parts(job, [&](Part& part, std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    float low = 0, high = 0;
    std::uint32_t largest = part.largest, negatives = 0;
#pragma clang loop vectorize(enable) interleave_count(4)
    for (std::size_t i = 0; i < count; ++i) {
      low += g[i] < 0.0f ? g[i] : 0.0f;
      high += g[i] < 0.0f ? 0.0f : g[i];
      negatives += g[i] < 0.0f ? 1 : 0;
      const std::uint32_t bits = magnitude_bits(g[i]);
      largest = bits > largest ? bits : largest;
    }
    part.largest = largest;
    part.low_sum += low;
    part.high_sum += high;
    part.negatives += negatives;
    pack_signs(g, count, words + at / 32);
  });
  if (mark_non_finite(job, all.largest)) return 1;
  header_of(job).scalar[0] = mean_or_zero(all.low_sum, all.negatives);
  header_of(job).scalar[1] = mean_or_zero(all.high_sum, job.n - all.negatives);
  return 0;
}
int onebit_decode(Job& job) {
  return decode_signs(job, header_of(job).scalar[0], header_of(job).scalar[1]);
}

// The second buffer holds the sum, which the second sweep updates in place.
int ef_sign_encode(Job& job) {
  auto* words = field_of<std::uint32_t>(job);
  const Part all = gather_parts(job, [&](Part& part, std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    const float* __restrict residual = job.state[0] + at;
    float* __restrict sum = job.next_state[0] + at;
    float total = 0;
    std::uint32_t largest = part.largest;
#pragma clang loop vectorize(enable) interleave_count(4)
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = magnitude_bits(g[i]);
      largest = bits > largest ? bits : largest;
      const float p = saturate(g[i] + residual[i]);
      sum[i] = p;
      total += std::fabs(p);
    }
    part.largest = largest;
    part.high_sum += total;
    pack_signs(sum, count, words + at / 32);
  });
  if (mark_non_finite(job, all.largest)) return 1;
  const float scale = mean_or_zero(all.high_sum, job.n);
  header_of(job).scalar[0] = scale;
  parallel_tiles(job, [&](std::size_t at, auto count) {
    float* __restrict p = job.next_state[0] + at;
    for (std::size_t i = 0; i < count; ++i) p[i] -= p[i] < 0.0f ? -scale : scale;
  });
  swap_states(job);
  return 0;
}
int ef_sign_decode(Job& job) {
  return decode_signs(job, -header_of(job).scalar[0], header_of(job).scalar[0]);
}

int minmax_encode(Job& job) {
  const Part all = gather_parts(job, [&](Part& part, std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    widen_range(g, count, part);
    part.largest = std::max(part.largest, largest_bits(g, count));
  });
  if (mark_non_finite(job, all.largest)) return 1;
  const float low = std::clamp(all.low, -1.7e38f, 1.7e38f);
  const float gap = (std::clamp(all.high, -1.7e38f, 1.7e38f) - low) / 3.0f;
  const float per_gap = inverse(gap);
  header_of(job).scalar[0] = low;
  header_of(job).scalar[1] = gap;
  const Draws draws(job.step);
  parallel_tiles(job, [&](std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    float place[kTile];
    std::uint8_t codes[kTile];
#pragma clang loop vectorize(enable)
    for (std::size_t i = 0; i < count; ++i) {
      const float x = (g[i] - low) * per_gap;
      place[i] = x < 0.0f ? 0.0f : x > 3.0f ? 3.0f : x;
    }
    const auto code = [](std::size_t, std::int32_t rounded) { return rounded; };
    round_to_codes(draws, at, count, place, code, codes);
    pack_pairs(codes, count, field_of<std::uint8_t>(job) + at / 4);
  });
  return 0;
}
int minmax_decode(Job& job) {
  const float low = header_of(job).scalar[0], gap = header_of(job).scalar[1];
  const auto* words = field_of<std::uint32_t>(job);
  return decode_tiles(job, [&](std::size_t at, auto count) {
    unpack<2>(words + at / 16, count, job.out + at, [=](std::uint32_t code) {
      return low + gap * static_cast<float>(static_cast<int>(code & 3));
    });
  });
}

int terngrad_encode(Job& job) {
  const Part all = gather_parts(job, [&](Part& part, std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    float sum = 0;
    std::uint32_t largest = part.largest;
#pragma clang loop vectorize(enable) interleave_count(4)
    for (std::size_t i = 0; i < count; ++i) {
      sum += g[i];
      const std::uint32_t bits = magnitude_bits(g[i]);
      largest = bits > largest ? bits : largest;
    }
    const float mean = sum / static_cast<float>(static_cast<int>(count));
    float squares = 0;
#pragma clang loop vectorize(enable) interleave_count(4)
    for (std::size_t i = 0; i < count; ++i) squares += (g[i] - mean) * (g[i] - mean);
    part.largest = largest;
    part.moments.join({static_cast<double>(std::size_t{count}), mean, squares});
  });
  if (mark_non_finite(job, all.largest)) return 1;
  const auto deviation =
      static_cast<float>(std::sqrt(all.moments.squares / static_cast<double>(job.n)));
  const float most = float_of(all.largest);
  const float scale = deviation > 0 ? std::min(most, 2.5f * deviation) : most;
  const float per_scale = inverse(scale);
  header_of(job).scalar[0] = scale;
  const Draws draws(job.step);
  parallel_tiles(job, [&](std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    float place[kTile];
    std::uint8_t codes[kTile];
#pragma clang loop vectorize(enable)
    for (std::size_t i = 0; i < count; ++i) {
      const float x = std::fabs(g[i]) * per_scale;
      place[i] = x < 1.0f ? x : 1.0f;
    }
    const auto code = [g](std::size_t i, std::int32_t rounded) {
      return (g[i] < 0.0f ? -rounded : rounded) & 3;
    };
    round_to_codes(draws, at, count, place, code, codes);
    pack_pairs(codes, count, field_of<std::uint8_t>(job) + at / 4);
  });
  return 0;
}
int terngrad_decode(Job& job) {
  const float scale = header_of(job).scalar[0];
  const auto* words = field_of<std::uint32_t>(job);
  return decode_tiles(job, [&](std::size_t at, auto count) {
    unpack<2>(words + at / 16, count, job.out + at,
              [=](std::uint32_t code) { return two_bits(code, scale); });
  });
}

}  // extern "C"

}  // namespace loops
