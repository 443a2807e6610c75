// Narrow floats: golden values, all patterns both ways, and rounding against the slow and obvious
// search for the nearest value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "runtime/core/lang.h"

namespace cinch {
namespace {

using lang::i64;
using lang::u16;
using lang::u64;
using lang::u8;

TEST(LangConversionsTest, GoldenFp8) {
  const struct {
    float x;
    int e4m3, e5m2;
  } rows[] = {{1.0f, 0x38, 0x3c},     {-2.0f, 0xc0, 0xc0},           {0.3f, 0x2a, 0x35},
              {448.0f, 0x7e, 0x5f},   {500.0f, 0x7e, 0x60},          {0x1p-9f, 0x01, 0x18},
              {0x1p-10f, 0x00, 0x14}, {1.5f * 0x1p-10f, 0x01, 0x16}, {1.0625f, 0x38, 0x3c},
              {1.1875f, 0x3a, 0x3d}};
  for (const auto& row : rows) {
    EXPECT_EQ(lang::to_f8e4m3(row.x), row.e4m3) << row.x;
    EXPECT_EQ(lang::to_f8e5m2(row.x), row.e5m2) << row.x;
  }
  EXPECT_EQ(lang::from_f8e4m3(u8{0x2a}), 0.3125f);
  EXPECT_EQ(lang::from_f8e5m2(u8{0x60}), 512.0f);
}

TEST(LangConversionsTest, GoldenBf16) {
  EXPECT_EQ(lang::to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(lang::to_bf16(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(lang::to_bf16(1 + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(lang::to_bf16(-3.14159f), 0xc049);
  EXPECT_EQ(lang::to_bf16(1e-40f), 0x0001);
}

TEST(LangConversionsTest, SpecialsOfEachFormat) {
  const float inf = INFINITY, nan = std::nanf("");
  EXPECT_EQ(lang::to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(lang::to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(lang::to_f16(-inf), 0xfc00);
  EXPECT_EQ(lang::to_f16(-nan), 0x7e00);
  EXPECT_EQ(lang::to_bf16(inf), 0x7f80);
  EXPECT_EQ(lang::to_bf16(-nan), 0x7fc0);
  EXPECT_EQ(lang::to_bf16(3.4e38f), 0x7f80);
  // e4m3 has no infinity and saturates.
  EXPECT_EQ(lang::to_f8e4m3(inf), 0x7e);
  EXPECT_EQ(lang::to_f8e4m3(-1e9f), 0xfe);
  EXPECT_EQ(lang::to_f8e4m3(nan), 0x7f);
  EXPECT_EQ(lang::to_f8e5m2(inf), 0x7c);
  EXPECT_EQ(lang::to_f8e5m2(61439.0f), 0x7b);
  EXPECT_EQ(lang::to_f8e5m2(61440.0f), 0x7c);
  EXPECT_EQ(lang::to_f8e5m2(-nan), 0x7e);
}

// The value of a pattern, from the definition: `digits` with the hidden one.
double value_of(int bits, int width, int digits, int bias) {
  const int mantissa_bits = digits - 1;
  const int magnitude = bits & ((1 << (width - 1)) - 1);
  const int exponent = magnitude >> mantissa_bits;
  const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
  const double value =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return (bits >> (width - 1)) != 0 ? -value : value;
}

struct Format {
  const char* name;
  int width, digits, bias;
  int highest;  // pattern of the largest finite value
  bool saturates;
  double (*widen)(int bits);
  int (*narrow32)(float x);
  int (*narrow64)(double x);
  int (*narrow_int)(i64 x);
};

const Format kFormats[] = {
    {"f16", 16, 11, 15, 0x7bff, false,
     [](int b) { return double{lang::from_f16(static_cast<u16>(b))}; },
     [](float x) { return int{lang::to_f16(x)}; }, [](double x) { return int{lang::to_f16(x)}; },
     [](i64 x) { return int{lang::to_f16(x)}; }},
    {"bf16", 16, 8, 127, 0x7f7f, false,
     [](int b) { return double{lang::from_bf16(static_cast<u16>(b))}; },
     [](float x) { return int{lang::to_bf16(x)}; }, [](double x) { return int{lang::to_bf16(x)}; },
     [](i64 x) { return int{lang::to_bf16(x)}; }},
    {"f8e4m3", 8, 4, 7, 0x7e, true,
     [](int b) { return double{lang::from_f8e4m3(static_cast<u8>(b))}; },
     [](float x) { return int{lang::to_f8e4m3(x)}; },
     [](double x) { return int{lang::to_f8e4m3(x)}; },
     [](i64 x) { return int{lang::to_f8e4m3(x)}; }},
    {"f8e5m2", 8, 3, 15, 0x7b, false,
     [](int b) { return double{lang::from_f8e5m2(static_cast<u8>(b))}; },
     [](float x) { return int{lang::to_f8e5m2(x)}; },
     [](double x) { return int{lang::to_f8e5m2(x)}; },
     [](i64 x) { return int{lang::to_f8e5m2(x)}; }}};

class LangConversionsOfFormat : public testing::TestWithParam<Format> {};

TEST_P(LangConversionsOfFormat, EveryPatternWidensToItsValueAndBack) {
  const Format& f = GetParam();
  for (int bits = 0; bits < 1 << f.width; ++bits) {
    const int magnitude = bits & ((1 << (f.width - 1)) - 1);
    const double found = f.widen(bits);
    if (magnitude <= f.highest) {
      EXPECT_EQ(found, value_of(bits, f.width, f.digits, f.bias)) << bits;
      EXPECT_EQ(f.narrow32(static_cast<float>(found)), bits);
      EXPECT_EQ(f.narrow64(found), bits);
    } else if (magnitude == f.highest + 1 && !f.saturates) {
      EXPECT_EQ(found, bits != magnitude ? -INFINITY : INFINITY);
    } else {
      EXPECT_TRUE(std::isnan(found)) << bits;
    }
  }
}

// Nearest, ties to the even pattern, found by bisection over all values (in long double: exact).
int nearest(const Format& f, long double x) {
  const bool is_negative = std::signbit(x);
  const long double magnitude = std::abs(x);
  int low = 0, high = f.highest + 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const bool is_below = value_of(middle, f.width, f.digits, f.bias) <= magnitude;
    (is_below ? low : high) = middle;
  }
  // The value of the pattern after the last one, as if exponents continued.
  const long double below = value_of(low, f.width, f.digits, f.bias);
  const long double above = low == f.highest
                                ? below + (below - value_of(low - 1, f.width, f.digits, f.bias))
                                : value_of(high, f.width, f.digits, f.bias);
  const long double middle = (below + above) / 2;
  int result = magnitude > middle || (magnitude == middle && low % 2 == 1) ? high : low;
  if (f.saturates) result = std::min(result, f.highest);
  return result | (is_negative ? 1 << (f.width - 1) : 0);
}

TEST_P(LangConversionsOfFormat, RoundsToNearestEvenOnce) {
  const Format& f = GetParam();
  std::mt19937_64 generator(11);
  std::vector<double> inputs;
  // Every value, the midpoint to the next, and their neighbours in f32 and f64.
  for (int bits = 0; bits <= f.highest; bits += f.width == 16 ? 7 : 1) {
    const double here = value_of(bits, f.width, f.digits, f.bias);
    const double next = value_of(bits + 1, f.width, f.digits, f.bias);
    for (double x : {here, (here + next) / 2}) {
      inputs.insert(inputs.end(), {x, std::nextafter(x, 0), std::nextafter(x, 1e300)});
      const auto narrow = static_cast<float>(x);
      inputs.insert(inputs.end(),
                    {double{std::nextafter(narrow, 0.0f)}, double{std::nextafter(narrow, 1e38f)}});
    }
  }
  for (int i = 0; i < 200000; ++i) {
    inputs.push_back(lang::f64_of_bits(
        static_cast<u64>((generator() & 0x800fffffffffffff) | ((850 + generator() % 350) << 52))));
  }
  for (double x : inputs) {
    for (double signed_x : {x, -x}) {
      ASSERT_EQ(f.narrow64(signed_x), nearest(f, signed_x)) << f.name << " " << signed_x;
      const auto single = static_cast<float>(signed_x);
      if (std::isinf(single)) continue;
      ASSERT_EQ(f.narrow32(single), nearest(f, single)) << f.name << " " << single;
    }
  }
}

TEST_P(LangConversionsOfFormat, IntegersRoundOnce) {
  const Format& f = GetParam();
  std::mt19937_64 generator(12);
  for (int i = 0; i < 100000; ++i) {
    const auto random = static_cast<i64>(generator());
    const i64 shifted = random >> (generator() % 63);
    // Slightly off a tie of a format of 8 to 11 digits.
    const i64 tie = (i64{1} << 62) + (i64{1} << 54) + (i % 5 - 2);
    for (i64 x : {shifted, tie, -tie}) {
      ASSERT_EQ(f.narrow_int(x), nearest(f, static_cast<long double>(x))) << f.name << " " << x;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LangConversionsOfFormat, testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cinch
