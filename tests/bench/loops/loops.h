// Compressors as plain hand-written loops, with which compiled programs are compared
// (tests/bench/peers.py). No intrinsics and no framework; Clang vectorises with -O3 -march=native.
//
// A payload here is a header of 64 bytes, then the fields: codes packed as in docs/payload.md, or
// `capacity` indices and, behind them, as many values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Bits of products and sums are those of the language: no fused multiply-add.
#pragma STDC FP_CONTRACT OFF

extern "C" {
// Everything that a call reads and writes; memory is the caller's. Arrays have room for a multiple
// of 1024 elements.
struct Job {
  const float* gradient;  // n elements
  float* out;             // n elements
  std::uint8_t* payload;
  float* state[2];  // the present values
  // Written by encode, which then swaps the two unless it found a non-finite value
  float* next_state[2];
  std::uint32_t* workspace;  // 2 n words, for selection
  std::uint64_t n;
  std::uint64_t capacity;  // of a selection's payload, in elements
  std::uint64_t step;
  float tau;       // tbq, threshold
  double ratio;    // topk, graddrop, dgc; decides sizes, so it is the exact value
  double sample;   // graddrop
  float momentum;  // dgc
};
}

namespace loops {

constexpr std::size_t kTile = 1024;  // elements
constexpr std::size_t kTilesPerTask = 16;
constexpr float kLargest = 3.4e38f;  // states saturate here
constexpr std::uint32_t kInfinity = 0x7f800000;

struct Header {
  std::uint32_t non_finite;
  std::uint32_t count;  // of a selection
  float scalar[14];     // scales, means
};
static_assert(sizeof(Header) == 64);

inline Header& header_of(const Job& job) {
  return *reinterpret_cast<Header*>(job.payload);
}
template <class T>
T* field_of(const Job& job) {
  return reinterpret_cast<T*>(job.payload + sizeof(Header));
}

inline std::size_t divide_up(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}
inline std::size_t num_tasks(const Job& job) {
  return divide_up(job.n, kTile * kTilesPerTask);
}

/// Calls work(context, task) for every task number below `number`, on all cores.
void run_tasks(std::size_t number, void (*work)(void*, std::size_t), void* context);

template <class F>
void parallel(std::size_t number, F&& task) {
  using Task = std::remove_reference_t<F>;
  run_tasks(number, [](void* context, std::size_t t) { (*static_cast<Task*>(context))(t); }, &task);
}

/// Calls tile(begin, count) for the tiles of one task; count is constant except for the very last
/// tile.
template <class F>
void each_tile(const Job& job, std::size_t task, F&& tile) {
  std::size_t at = task * kTile * kTilesPerTask;
  for (std::size_t t = 0; t < kTilesPerTask && at < job.n; ++t, at += kTile) {
    if (job.n - at >= kTile) {
      tile(at, std::integral_constant<std::size_t, kTile>{});
    } else {
      tile(at, std::size_t{job.n - at});
    }
  }
}
/// All tiles, on all cores.
template <class F>
void parallel_tiles(const Job& job, F&& tile) {
  parallel(num_tasks(job), [&](std::size_t task) { each_tile(job, task, tile); });
}

inline std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
inline float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
inline std::uint32_t magnitude_bits(float x) {
  return bits_of(x) & 0x7fffffffu;
}
inline float saturate(float x) {
  x = x < kLargest ? x : kLargest;
  return x > -kLargest ? x : -kLargest;
}

/// The largest bits of |g|: from kInfinity on, a value is not finite.
template <class Count>
inline std::uint32_t largest_bits(const float* __restrict g, Count count) {
  std::uint32_t largest = 0;
#pragma clang loop vectorize(enable) interleave_count(4)
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = magnitude_bits(g[i]);
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

/// Marks the payload if a value is not finite; returns whether it did.
bool mark_non_finite(const Job& job, std::uint32_t largest);
/// If the payload is marked, fills the output with NaN and returns true.
bool decode_marked(const Job& job);
/// Decodes by tiles. Returns 0: such a payload cannot be wrong.
template <class F>
int decode_tiles(const Job& job, F&& tile) {
  if (!decode_marked(job)) parallel_tiles(job, tile);
  return 0;
}
/// Makes the new values that encode wrote the present state.
void swap_states(Job& job);

}  // namespace loops
