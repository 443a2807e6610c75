// The language's results for NaN, infinities, zeros and the ends of the integers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/core/lang.h"

namespace cinch {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
using lang::i32;
using lang::i64;
using lang::u32;
using lang::u64;

bool is_minus_zero(double x) {
  return x == 0 && std::signbit(x);
}
bool is_plus_zero(double x) {
  return x == 0 && !std::signbit(x);
}

TEST(LangSpecialValuesTest, MinAndMaxIgnoreNanAndOrderZeros) {
  EXPECT_EQ(lang::min(kNan, 1.0f), 1.0f);
  EXPECT_EQ(lang::min(1.0f, kNan), 1.0f);
  EXPECT_EQ(lang::max(kNan, 1.0f), 1.0f);
  EXPECT_EQ(lang::max(1.0f, kNan), 1.0f);
  EXPECT_TRUE(std::isnan(lang::min(kNan, kNan)));
  EXPECT_TRUE(is_minus_zero(lang::min(0.0f, -0.0f)));
  EXPECT_TRUE(is_minus_zero(lang::min(-0.0f, 0.0f)));
  EXPECT_TRUE(is_plus_zero(lang::max(0.0f, -0.0f)));
  EXPECT_TRUE(is_plus_zero(lang::max(-0.0f, 0.0f)));
  EXPECT_EQ(lang::clamp(kNan, 1.0f, 2.0f), 1.0f);
}

TEST(LangSpecialValuesTest, SignAndRoundings) {
  EXPECT_TRUE(is_plus_zero(lang::sign(-0.0f)));
  EXPECT_TRUE(is_plus_zero(lang::sign(0.0f)));
  EXPECT_EQ(lang::sign(-3.5f), -1.0f);
  EXPECT_EQ(lang::sign(i64{-7}), -1);
  EXPECT_EQ(lang::sign(u32{7}), 1u);
  EXPECT_TRUE(std::isnan(lang::sign(kNan)));
  EXPECT_EQ(lang::round(2.5f), 2.0f);
  EXPECT_EQ(lang::round(3.5f), 4.0f);
  EXPECT_EQ(lang::round(-0.5f), 0.0f);
  EXPECT_TRUE(is_minus_zero(lang::ceil(-0.5f)));
  EXPECT_TRUE(is_minus_zero(lang::round(-0.2)));
  EXPECT_TRUE(is_minus_zero(lang::trunc(-0.9f)));
  EXPECT_EQ(lang::floor(-0.5f), -1.0f);
  EXPECT_EQ(lang::floor(8388607.5f), 8388607.0f);
  EXPECT_EQ(lang::floor(kInf), kInf);
}

TEST(LangSpecialValuesTest, ExponentialsAndLogarithms) {
  EXPECT_EQ(lang::exp(0.0f), 1.0f);
  EXPECT_EQ(lang::exp(-kInf), 0.0f);
  EXPECT_EQ(lang::exp(kInf), kInf);
  EXPECT_EQ(lang::exp(-103.9f), 0x1p-149f * std::round(std::exp(-103.9) / 0x1p-149));
  EXPECT_TRUE(std::isnan(lang::exp(kNan)));
  for (int k = -149; k < 128; ++k) {
    EXPECT_EQ(lang::exp2(static_cast<float>(k)), std::ldexp(1.0f, k));
    EXPECT_EQ(lang::log2(std::ldexp(1.0f, k)), static_cast<float>(k));
  }
  for (int k = -1074; k < 1024; ++k) {
    EXPECT_EQ(lang::exp2(static_cast<double>(k)), std::ldexp(1.0, k));
    EXPECT_EQ(lang::log2(std::ldexp(1.0, k)), static_cast<double>(k));
  }
  EXPECT_TRUE(is_plus_zero(lang::log(1.0f)));
  EXPECT_EQ(lang::log(0.0f), -kInf);
  EXPECT_EQ(lang::log(-0.0f), -kInf);
  EXPECT_EQ(lang::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(lang::log(-1.0f)));
}

// Equal, both NaN, or ordinary numbers within a relative 2^-22 or 2^-51; magnitudes and signs are
// those of libm.
template <typename T>
bool is_like(T found, T expected) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::signbit(found) != std::signbit(expected)) return false;
  if (expected == 0 || std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= std::abs(expected) * 4 * std::numeric_limits<T>::epsilon();
}

// libm follows C's Annex F in all special values of these.
TEST(LangSpecialValuesTest, TanhAndLog1pFollowLibm) {
  const double values[] = {0.0, -0.0, kInf, -kInf, kNan, -1.0, -2.0, 5e-324, -1e-300, 1e300, -30.0};
  for (const double x : values) {
    EXPECT_TRUE(is_like(lang::tanh(x), std::tanh(x))) << x;
    EXPECT_TRUE(is_like(lang::log1p(x), std::log1p(x))) << x;
    const auto f = static_cast<float>(x);
    EXPECT_TRUE(is_like(lang::tanh(f), std::tanh(f))) << f;
    EXPECT_TRUE(is_like(lang::log1p(f), std::log1p(f))) << f;
  }
}

// libm follows IEEE 754 in all special values of pow.
TEST(LangSpecialValuesTest, PowFollowsIeee) {
  const double values[] = {0.0,    -0.0,  0.5,  -0.5,  1.0,    -1.0,
                           2.0,    -2.0,  3.0,  -3.0,  2.5,    -2.5,
                           kInf,   -kInf, kNan, 1e300, -1e300, 9007199254740993.0,
                           1e-300, 5e-324};
  for (double x : values) {
    for (double y : values) {
      EXPECT_TRUE(is_like(lang::pow(x, y), std::pow(x, y))) << x << " to " << y;
      const auto fx = static_cast<float>(x), fy = static_cast<float>(y);
      EXPECT_TRUE(is_like(lang::pow(fx, fy), std::pow(fx, fy))) << fx << " to " << fy;
    }
  }
}

TEST(LangSpecialValuesTest, SinAndCosOfSpecials) {
  EXPECT_TRUE(is_minus_zero(lang::sin(-0.0f)));
  EXPECT_TRUE(is_plus_zero(lang::sin(0.0)));
  EXPECT_EQ(lang::cos(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(lang::sin(kInf)));
  EXPECT_TRUE(std::isnan(lang::cos(kNan)));
}

TEST(LangSpecialValuesTest, IntegersWrapAndNeverTrap) {
  EXPECT_EQ(lang::add(INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(lang::neg(INT32_MIN), INT32_MIN);
  EXPECT_EQ(lang::abs(INT32_MIN), INT32_MIN);
  EXPECT_EQ(lang::div(7, 0), 0);
  EXPECT_EQ(lang::mod(7, 0), 0);
  EXPECT_EQ(lang::div(INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(lang::mod(INT32_MIN, -1), 0);
  EXPECT_EQ(lang::div(-7, 2), -3);
  EXPECT_EQ(lang::mod(-7, 2), -1);
  EXPECT_EQ(lang::ceil_div(7, 2), 4);
  EXPECT_EQ(lang::ceil_div(-7, 2), -3);
  EXPECT_EQ(lang::ceil_div(-7, -2), 4);
  EXPECT_EQ(lang::ceil_div(7u, 0u), 0u);
  EXPECT_EQ(lang::shl(1, 33), 2);
  EXPECT_EQ(lang::shl(1, -1), INT32_MIN);
  EXPECT_EQ(lang::shr(INT32_MIN, 31), -1);
  EXPECT_EQ(lang::shr(0x80000000u, 31u), 1u);
  EXPECT_EQ(lang::shl(i64{3}, i64{41}, 40), 6);
  EXPECT_EQ(lang::shl(i64{1}, i64{-1}, 40), -(i64{1} << 39));
  EXPECT_EQ(lang::wrap_int(i64{1} << 39, 40), -(i64{1} << 39));
  EXPECT_EQ(lang::wrap_int(u64{1} << 40, 40), 0u);
}

TEST(LangSpecialValuesTest, CountsOfBitsSeeTheWidth) {
  EXPECT_EQ(lang::popcount(-1), 32u);
  EXPECT_EQ(lang::popcount(-1, 5), 5u);
  EXPECT_EQ(lang::popcount(u64{0xf0f0f0f0f0f0f0f0}), 32u);
  EXPECT_EQ(lang::clz(0u), 32u);
  EXPECT_EQ(lang::clz(u64{1}), 63u);
  EXPECT_EQ(lang::clz(u32{1}, 7), 6u);
  EXPECT_EQ(lang::clz(-1, 7), 0u);
  EXPECT_EQ(lang::clz(u32{0}, 7), 7u);
}

TEST(LangSpecialValuesTest, FloatsToIntegersTruncateAndSaturate) {
  EXPECT_EQ(lang::float_to_int<i32>(-2.9f), -2);
  EXPECT_EQ(lang::float_to_int<i32>(kNan), 0);
  EXPECT_EQ(lang::float_to_int<i32>(kInf), INT32_MAX);
  EXPECT_EQ(lang::float_to_int<i32>(-kInf), INT32_MIN);
  EXPECT_EQ(lang::float_to_int<i32>(2147483648.0f), INT32_MAX);
  EXPECT_EQ(lang::float_to_int<i32>(-2147483648.0f), INT32_MIN);
  EXPECT_EQ(lang::float_to_int<u32>(-0.9f), 0u);
  EXPECT_EQ(lang::float_to_int<u32>(-5.0f), 0u);
  EXPECT_EQ(lang::float_to_int<u32>(4294967295.0), UINT32_MAX);
  EXPECT_EQ(lang::float_to_int<u64>(1e20f), UINT64_MAX);
  EXPECT_EQ(lang::float_to_int<i64>(-1e20), INT64_MIN);
  EXPECT_EQ(lang::float_to_int<i64>(9007199254740993.0), 9007199254740992);
  EXPECT_EQ(lang::float_to_int<i32>(7.9f, 4), 7);
  EXPECT_EQ(lang::float_to_int<i32>(8.0f, 4), 7);
  EXPECT_EQ(lang::float_to_int<i32>(-8.9f, 4), -8);
  EXPECT_EQ(lang::float_to_int<i32>(-9.0f, 4), -8);
  EXPECT_EQ(lang::float_to_int<u32>(1.5f, 1), 1u);
  EXPECT_EQ(lang::float_to_int<u32>(9.0f, 1), 1u);
  EXPECT_EQ(lang::float_to_int<i32>(-9.0f, 2), -2);
}

TEST(LangSpecialValuesTest, IntegersToIntegersSaturate) {
  EXPECT_EQ(lang::int_to_int<u32>(-5), 0u);
  EXPECT_EQ(lang::int_to_int<u32>(300, 8), 255u);
  EXPECT_EQ(lang::int_to_int<i32>(300u, 8), 127);
  EXPECT_EQ(lang::int_to_int<i32>(-300, 8), -128);
  EXPECT_EQ(lang::int_to_int<i32>(UINT64_MAX + u64{0}), INT32_MAX);
  EXPECT_EQ(lang::int_to_int<i64>(UINT64_MAX + u64{0}), INT64_MAX);
  EXPECT_EQ(lang::int_to_int<u64>(i64{-1}), 0u);
  EXPECT_EQ(lang::int_to_int<i32>(i64{INT64_MIN}), INT32_MIN);
  EXPECT_EQ(lang::int_to_int<u64>(5u, 64), 5u);
  EXPECT_EQ(lang::int_to_int<i32>(-3, 2), -2);
}

TEST(LangSpecialValuesTest, NanIsStoredCanonically) {
  EXPECT_EQ(lang::bits_of(lang::canonical(lang::f32_of_bits(0xffc12345u))), 0x7fc00000u);
  EXPECT_EQ(lang::bits_of(lang::canonical(lang::f64_of_bits(0xfff0000000000001ull))),
            0x7ff8000000000000ull);
  EXPECT_EQ(lang::bits_of(lang::canonical(-0.0f)), 0x80000000u);
  EXPECT_EQ(lang::divide_or_zero(3.0f, -0.0f), 0.0f);
  EXPECT_EQ(lang::divide_or_zero(kNan, 0.0f), 0.0f);
}

// Both forms of the same bits, for an element alone and for eight of them.
std::uint32_t bits_of_power_below(std::uint32_t bits, bool is_short) {
  const float x = std::bit_cast<float>(bits);
  const float whole = is_short ? lang::floor_of_log2(x) : lang::floor(lang::log2(x));
  return std::bit_cast<std::uint32_t>(is_short ? lang::exp2_of_whole(whole) : lang::exp2(whole));
}

TEST(LangSpecialValuesTest, PowersBelowHaveTheBitsOfTheirLongForm) {
  const auto expect_same = [](std::uint32_t bits) {
    const std::uint32_t expected = bits_of_power_below(bits, false);
    if (bits_of_power_below(bits, true) != expected) ADD_FAILURE() << std::hex << bits;
    const auto lanes = lang::splat<lang::Vec<float, 8>>(std::bit_cast<float>(bits));
    const auto power = lang::exp2_of_whole(lang::floor_of_log2(lanes));
    if (std::bit_cast<std::uint32_t>(float(power[3])) != expected)
      ADD_FAILURE() << std::hex << bits;
  };
  // Around each power of two, where log2 rounds up to the next whole number, and all over.
  constexpr std::uint32_t kNear = 3000;
  for (std::uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (std::uint32_t i = 0; i < kNear; ++i) {
      expect_same((exponent << 23) + i);
      expect_same((exponent << 23) - 1 - i);
      expect_same((exponent << 23) - i * 7);
    }
  }
  for (std::uint32_t i = 0; i < 1u << 20; ++i) expect_same(i * 0x9e3779b1u);
  for (float k = -160; k < 140; ++k) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(lang::exp2_of_whole(k)),
              std::bit_cast<std::uint32_t>(lang::exp2(k)));
  }
}

}  // namespace
}  // namespace cinch
