// Features that functions of an `extern fn` may use, for cpp_functions.cinch.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define HALF_OF(x) ((x) / 2)

namespace cpp_functions {

// Tables: two-dimensional, a standard array, and one that a function computes at compile time.
constexpr float kWeights[3][4] = {{0.5f, 1, 2, 4}, {-1, -2, -3}, {0.25f, 0.125f}};

constexpr std::array<std::uint16_t, 64> make_squares() {
  std::array<std::uint16_t, 64> squares{};
  for (std::size_t i = 0; i < squares.size(); ++i) {
    squares[i] = static_cast<std::uint16_t>(i * i * 17);
  }
  return squares;
}
inline constexpr auto kSquares = make_squares();

struct Limits {
  static constexpr std::int64_t kSteps[4] = {1, -10, 100, INT64_MIN};
};

enum class Side : std::uint8_t { Left = 3, Right };

struct Pair {
  float low = 1, high = 2;
  int count;
};

inline Pair sorted(Pair pair, bool swaps = true) {
  if (swaps && pair.low > pair.high) {
    const float low = pair.high;
    pair.high = pair.low;
    pair.low = low;
  }
  pair.count += 1;
  return pair;
}

// Overloads, and a template that calls one of them.
inline float scaled(float x) {
  return x * 3;
}
inline double scaled(double x) {
  return x * 5;
}
template <class T>
T twice_scaled(T x) {
  if constexpr (sizeof(T) == 8) return scaled(scaled(x));
  return scaled(x) + T(1);
}

inline float weight(std::int32_t row, std::int32_t column) {
  return kWeights[row][column];
}

// Every index, even from NaN, lies in the table.
inline std::uint16_t square(float x) {
  return kSquares[static_cast<std::int64_t>(x * 8)];
}

inline std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x) ^ 0x5a5a5a5au;
}

inline float of_bits(std::uint32_t x) {
  return std::bit_cast<float>(x & 0x7f7fffffu);
}

// Cases that C++ leaves undefined have one meaning here.
inline std::int32_t undefined(std::int32_t a, std::int32_t b) {
  const int sum = a * 65537 + (a << b) - (a >> (b - 40));
  return sum / (b % 3) + a % (b % 5) + std::abs(a) - -sum + ~b;
}

inline std::int8_t narrow(float x, bool is_negative) {
  std::int8_t made = static_cast<std::int8_t>(x * 100);
  made += 7;
  return is_negative ? static_cast<std::int8_t>(-made) : made;
}

inline std::int64_t wide(std::uint64_t x) {
  std::int64_t sum = 0;
  for (unsigned i = 0; i < 4u; i++) sum += Limits::kSteps[i] * static_cast<std::int64_t>(x >> i);
  return sum;
}

// Loops with a limit, `continue`, `break`, and a loop that goes down.
[[clang::annotate("cinch::at_most", 9)]] inline std::int32_t halvings(float x) {
  std::int32_t rounds = 0;
  x = std::fabs(x);
  while (x > 0.01f) {
    x = HALF_OF(x);
    if (++rounds; rounds == 4) continue;
    if (rounds == 7) break;
  }
  do {
    rounds += 100;
  } while (rounds < 300);
  for (int i = 10; i >= 0; i -= 3) rounds ^= i;
  return rounds;
}

inline float chosen(std::uint8_t which, float x) {
  const Side side = which % 2 != 0 ? Side::Left : Side::Right;
  switch (which & 7) {
    case 0:
      return x;
    case 1:
      x += 1;
      [[fallthrough]];
    case 2: {
      const float y = x * 2;
      x = y;
      break;
    }
    case static_cast<int>(Side::Left):
      return std::min(x, -x);
    default:
      x = side == Side::Right ? std::max(0.25f, x) : -x;
  }
  return x * 0.5f;
}

inline double mathematics(double x) {
  const double root = std::sqrt(std::fabs(x));
  float window[4] = {1, 2};
  for (int i = 0; i < 4; ++i) window[i] += static_cast<float>(root) * static_cast<float>(i);
  double sum = std::exp(-root) + std::log(root + 1) + std::sin(x) + std::pow(root, 0.75);
  for (int i = 0; i < 6; ++i) sum += window[i] * window[i - 1];
  return std::isnan(sum) || !std::isfinite(sum) ? std::floor(root) : sum + std::nearbyint(x);
}

inline float through_struct(float x, float y) {
  Pair pair{x, y, 0};
  pair = sorted(pair);
  Pair other = sorted(pair, false);
  const Pair made{};
  other.low += made.high;
  return other.low * 2 + other.high + static_cast<float>(other.count);
}

inline bool is_between(const float& x, float low, float high = 1) {
  return x > low && !(x >= high);
}

inline float nan_of(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return x > 0 ? x - x * kInfinity : -kInfinity + kInfinity;
}

}  // namespace cpp_functions
