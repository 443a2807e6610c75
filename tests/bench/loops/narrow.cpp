// fp16, bf16, tbq, natural: programs of one sweep.
#include <atomic>
#include <cstring>

#include "draws.h"
#include "packing.h"

namespace loops {
namespace {

// The largest bits of all tiles.
class Largest {
 public:
  void take(std::uint32_t bits) {
    if (bits >= kInfinity) found_ = kInfinity;
  }
  std::uint32_t get() const { return found_; }

 private:
  std::atomic<std::uint32_t> found_{0};
};

// value(x) of every element, T of 16 bits.
template <class T, class F>
int encode_16_bits(Job& job, F value) {
  auto* out = field_of<T>(job);
  Largest largest;
  parallel_tiles(job, [&](std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    T* __restrict w = out + at;
    std::uint32_t most = 0;
#pragma clang loop vectorize(enable)
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = magnitude_bits(g[i]);
      most = bits > most ? bits : most;
      w[i] = value(g[i]);
    }
    largest.take(most);
  });
  return mark_non_finite(job, largest.get());
}

float natural_value(std::uint8_t code) {
  const std::uint32_t kept = code & 127u;
  const std::uint32_t sign = (code & 128u) << 24;
  return float_of(kept == 0 ? sign : (kept + 18) << 23 | sign);
}

}  // namespace

extern "C" {

int fp16_encode(Job& job) {
  return encode_16_bits<_Float16>(job, [](float x) { return static_cast<_Float16>(x); });
}
int fp16_decode(Job& job) {
  const auto* values = field_of<_Float16>(job);
  return decode_tiles(job, [&](std::size_t at, auto count) {
    const _Float16* __restrict w = values + at;
    float* __restrict out = job.out + at;
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(w[i]);
  });
}

int bf16_encode(Job& job) {
  return encode_16_bits<std::uint16_t>(job, [](float x) {
    const std::uint32_t bits = bits_of(x);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  });
}
int bf16_decode(Job& job) {
  const auto* values = field_of<std::uint16_t>(job);
  return decode_tiles(job, [&](std::size_t at, auto count) {
    const std::uint16_t* __restrict w = values + at;
    float* __restrict out = job.out + at;
    for (std::size_t i = 0; i < count; ++i) out[i] = float_of(std::uint32_t{w[i]} << 16);
  });
}

int tbq_encode(Job& job) {
  Largest largest;
  const float tau = job.tau;
  parallel_tiles(job, [&](std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    const float* __restrict residual = job.state[0] + at;
    float* __restrict next = job.next_state[0] + at;
    std::uint8_t codes[kTile];
    std::uint32_t most = 0;
#pragma clang loop vectorize(enable)
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = magnitude_bits(g[i]);
      most = bits > most ? bits : most;
      const float pending = saturate(residual[i] + g[i]);
      const int quanta = (pending >= tau ? 1 : 0) - (pending <= -tau ? 1 : 0);
      next[i] = pending - static_cast<float>(quanta) * tau;
      codes[i] = static_cast<std::uint8_t>(quanta + 1);
    }
    std::memset(codes + count, 0, kTile - count);
    pack_pairs(codes, count, field_of<std::uint8_t>(job) + at / 4);
    largest.take(most);
  });
  if (mark_non_finite(job, largest.get())) return 1;
  swap_states(job);
  return 0;
}
int tbq_decode(Job& job) {
  const auto* words = field_of<std::uint32_t>(job);
  const float tau = job.tau;
  return decode_tiles(job, [&](std::size_t at, auto count) {
    unpack<2>(words + at / 16, count, job.out + at, [tau](std::uint32_t code) {
      return (static_cast<float>(static_cast<int>(code & 3)) - 1.0f) * tau;
    });
  });
}

int natural_encode(Job& job) {
  Largest largest;
  const Draws draws(job.step);
  parallel_tiles(job, [&](std::size_t at, auto count) {
    const float* __restrict g = job.gradient + at;
    std::uint8_t* __restrict codes = field_of<std::uint8_t>(job) + at;
    largest.take(largest_bits(g, count));
    float fraction[kTile];
    std::int32_t up[kTile];
    for (std::size_t i = 0; i < count; ++i) {
      fraction[i] = static_cast<float>(static_cast<int>(bits_of(g[i]) & 0x7fffff)) * 0x1p-23f;
    }
    round_at_random(draws, at, count, fraction, up);
#pragma clang loop vectorize(enable)
    for (std::size_t i = 0; i < count; ++i) {
      const int exponent = static_cast<int>(magnitude_bits(g[i]) >> 23) + up[i];
      const int kept = (exponent < 18 ? 18 : exponent > 145 ? 145 : exponent) - 18;
      const int sign = static_cast<int>(bits_of(g[i]) >> 24 & 128);
      codes[i] = static_cast<std::uint8_t>(kept == 0 ? 0 : kept | sign);
    }
  });
  return mark_non_finite(job, largest.get());
}
int natural_decode(Job& job) {
  const auto* codes = field_of<std::uint8_t>(job);
  return decode_tiles(job, [&](std::size_t at, auto count) {
    const std::uint8_t* __restrict w = codes + at;
    float* __restrict out = job.out + at;
#pragma clang loop vectorize(enable)
    for (std::size_t i = 0; i < count; ++i) out[i] = natural_value(w[i]);
  });
}

}  // extern "C"

}  // namespace loops
