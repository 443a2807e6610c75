// Distances of the language's functions from the exact values, which come from libm's wider types:
// f64 for f32, the 80-bit long double for f64.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/core/lang.h"

namespace cinch {
namespace {

// Distance of `found` from `exact` in units of the last place of T at `exact` (subnormals: of the
// smallest subnormal).
template <typename T, typename Wide>
double error_ulp(T found, Wide exact) {
  if (std::isnan(exact)) return std::isnan(found) ? 0 : INFINITY;
  constexpr int kDigits = std::numeric_limits<T>::digits;
  const Wide largest = std::numeric_limits<T>::max();
  if (std::abs(exact) > largest)
    return std::isinf(found) || found == largest || found == -largest ? 0 : INFINITY;
  if (std::isinf(found)) {
    // Exact if the true value rounds up beyond the largest one.
    return std::abs(exact) > largest * (1 - Wide(0x1p-50)) ? 0 : INFINITY;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::abs(static_cast<Wide>(found) - exact) /
                             std::ldexp(Wide(1), exponent - kDigits));
}

struct Range {
  double low, high;
};

// Half uniform over the range, half uniform over exponents.
template <typename T>
T draw_from(std::mt19937_64& generator, Range range) {
  std::uniform_real_distribution<double> uniform(range.low, range.high);
  const double x = uniform(generator);
  if (generator() % 2 == 0) return static_cast<T>(x);
  const int least = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  const int most = std::max(std::ilogb(std::max(std::abs(range.low), range.high)), least + 1);
  const int exponent = least + static_cast<int>(generator() % static_cast<unsigned>(most - least));
  const T value = static_cast<T>(std::ldexp(1 + x / (1 + std::abs(x)) / 2, exponent));
  return range.low < 0 && generator() % 2 == 0 ? -value : value;
}

template <typename T, typename Wide, typename Found, typename Exact>
double worst_error(Range range, int count, Found found, Exact exact) {
  std::mt19937_64 generator(42);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    const T x = draw_from<T>(generator, range);
    worst = std::max(worst, error_ulp<T, Wide>(found(x), exact(static_cast<Wide>(x))));
  }
  return worst;
}

constexpr int kCount = 400000;

#define CINCH_EXPECT_ACCURATE(function, low, high, most_ulp_f32, most_ulp_f64, low64, high64) \
  EXPECT_LT((worst_error<float, double>(                                                      \
                {low, high}, kCount, [](float x) { return lang::function(x); },               \
                [](double x) { return std::function(x); })),                                  \
            most_ulp_f32);                                                                    \
  EXPECT_LT((worst_error<double, long double>(                                                \
                {low64, high64}, kCount, [](double x) { return lang::function(x); },          \
                [](long double x) { return std::function(x); })),                             \
            most_ulp_f64)

TEST(LangAccuracyTest, Exp) {
  CINCH_EXPECT_ACCURATE(exp, -104, 89, 1.0, 1.0, -746, 710);
}
TEST(LangAccuracyTest, Exp2) {
  CINCH_EXPECT_ACCURATE(exp2, -151, 129, 1.0, 1.0, -1076, 1025);
}
TEST(LangAccuracyTest, Log) {
  CINCH_EXPECT_ACCURATE(log, 0, 1e38, 1.0, 1.0, 0, 1e300);
}
TEST(LangAccuracyTest, LogNearOne) {
  CINCH_EXPECT_ACCURATE(log, 0.6, 1.6, 1.0, 1.0, 0.6, 1.6);
}
TEST(LangAccuracyTest, Log2) {
  CINCH_EXPECT_ACCURATE(log2, 0, 1e38, 1.0, 1.0, 0, 1e300);
}
TEST(LangAccuracyTest, Log2NearOne) {
  CINCH_EXPECT_ACCURATE(log2, 0.6, 1.6, 1.0, 1.0, 0.6, 1.6);
}
TEST(LangAccuracyTest, Log1p) {
  CINCH_EXPECT_ACCURATE(log1p, -1, 1e38, 1.0, 1.0, -1, 1e300);
}
TEST(LangAccuracyTest, Log1pNearZero) {
  CINCH_EXPECT_ACCURATE(log1p, -0.9, 3, 1.0, 1.0, -0.9, 3);
}
TEST(LangAccuracyTest, Log1pAtZero) {
  CINCH_EXPECT_ACCURATE(log1p, -1e-3, 1e-3, 1.0, 1.0, -1e-7, 1e-7);
}
TEST(LangAccuracyTest, Tanh) {
  CINCH_EXPECT_ACCURATE(tanh, -12, 12, 1.0, 1.0, -22, 22);
}
TEST(LangAccuracyTest, TanhNearZero) {
  CINCH_EXPECT_ACCURATE(tanh, -0.7, 0.7, 1.0, 1.0, -0.7, 0.7);
}
TEST(LangAccuracyTest, Sin) {
  CINCH_EXPECT_ACCURATE(sin, -10, 10, 1.0, 1.0, -10, 10);
}
TEST(LangAccuracyTest, Cos) {
  CINCH_EXPECT_ACCURATE(cos, -10, 10, 1.0, 1.0, -10, 10);
}
TEST(LangAccuracyTest, SinOfLarge) {
  CINCH_EXPECT_ACCURATE(sin, -1e38, 1e38, 1.0, 1.0, -1e300, 1e300);
}
TEST(LangAccuracyTest, CosOfLarge) {
  CINCH_EXPECT_ACCURATE(cos, -1e38, 1e38, 1.0, 1.0, -1e300, 1e300);
}
TEST(LangAccuracyTest, SinNearTheLimitOfReduction) {
  CINCH_EXPECT_ACCURATE(sin, 1e6, 1.1e6, 1.0, 1.0, 1e6, 1.1e6);
}

// The f64 that is nearest to a multiple of π/2: the worst case of the reduction.
TEST(LangAccuracyTest, CosNearestToAMultipleOfHalfPi) {
  const double x = 6381956970095103.0 * 0x1p797;
  EXPECT_LT((error_ulp<double, long double>(lang::cos(x), std::cos(static_cast<long double>(x)))),
            1.0);
}

template <typename T, typename Wide>
double worst_pow_error(double base_range, double log2_limit) {
  std::mt19937_64 generator(7);
  double worst = 0;
  for (int i = 0; i < kCount; ++i) {
    const T x = draw_from<T>(generator, {0, base_range});
    if (x == 0 || x == 1) continue;
    std::uniform_real_distribution<double> uniform(-1, 1);
    const T y = static_cast<T>(uniform(generator) * log2_limit / std::log2(static_cast<double>(x)));
    const Wide exact = std::pow(static_cast<Wide>(x), static_cast<Wide>(y));
    worst = std::max(worst, error_ulp<T, Wide>(lang::pow(x, y), exact));
  }
  return worst;
}
TEST(LangAccuracyTest, Pow) {
  EXPECT_LT((worst_pow_error<float, double>(1e30, 130)), 0.51);
  EXPECT_LT((worst_pow_error<double, long double>(1e300, 1030)), 1.0);
  EXPECT_LT((worst_pow_error<double, long double>(2, 1030)), 1.0);
}

TEST(LangAccuracyTest, SqrtDivisionAndFmaAreCorrectlyRounded) {
  std::mt19937_64 generator(3);
  for (int i = 0; i < kCount; ++i) {
    const double a = draw_from<double>(generator, {-1e300, 1e300});
    const double b = draw_from<double>(generator, {-1e8, 1e8});
    const double c = i % 3 == 0 ? -(a * b) : draw_from<double>(generator, {-1e10, 1e10});
    EXPECT_EQ(lang::sqrt(std::abs(a)), std::sqrt(std::abs(a)));
    EXPECT_EQ(lang::fma(a, b, c), std::fma(a, b, c)) << a << " " << b << " " << c;
    const auto x = static_cast<float>(b), y = draw_from<float>(generator, {-1e30, 1e30});
    const float z = i % 3 == 0 ? -(x * y) : draw_from<float>(generator, {-1, 1});
    EXPECT_EQ(lang::sqrt(std::abs(x)), std::sqrt(std::abs(x)));
    EXPECT_EQ(lang::fma(x, y, z), std::fma(x, y, z)) << x << " " << y << " " << z;
  }
}

}  // namespace
}  // namespace cinch
