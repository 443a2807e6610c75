// Runs the library on finite gradients of extreme magnitude. All states stay finite, nothing
// decodes to an infinity or NaN, and scales neither overflow nor underflow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/inputs.h"
#include "tests/programs/harness/sessions.h"

namespace cinch::testing {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

// A kind of gradient: `value` returns element i of the gradient of a step.
struct Extreme {
  const char* name;
  float (*value)(std::size_t i, std::uint64_t step);
};
constexpr float kMixed[] = {kLargest, -kLargest, 1e-38f, kSmallest, 0.0f,       1.0f,    -1e-38f,
                            -3.4e38f, 1e19f,     -1e30f, -0.0f,     -kSmallest, 65536.0f};
const Extreme kExtremes[] = {
    {"largest", [](std::size_t, std::uint64_t) { return kLargest; }},
    {"lowest", [](std::size_t, std::uint64_t) { return -kLargest; }},
    {"both signs", [](std::size_t i, std::uint64_t) { return i % 3 == 0 ? kLargest : -kLargest; }},
    {"signs that change",
     [](std::size_t i, std::uint64_t step) { return (i + step) % 2 == 0 ? 3.4e38f : -3.4e38f; }},
    {"one large", [](std::size_t i, std::uint64_t) { return i == 0 ? kLargest : 1e-3f; }},
    {"tiny", [](std::size_t i, std::uint64_t) { return i % 2 == 0 ? 1e-38f : -1e-38f; }},
    {"subnormal",
     [](std::size_t i, std::uint64_t) { return static_cast<float>(i % 5) * kSmallest; }},
    {"mixed",
     [](std::size_t i, std::uint64_t step) { return kMixed[(i + 5 * step) % std::size(kMixed)]; }},
};

bool is_finite(float x) {
  return std::isfinite(x);
}

// States of integers are finite.
bool has_finite_states(const rt::Session& session) {
  for (std::uint32_t s = 0; s < session.info().states.size(); ++s) {
    if (session.info().states[s].type.dtype != kF32) continue;
    if (!std::ranges::all_of(values_of<float>(session.state(s).value()), is_finite)) return false;
  }
  return true;
}

std::vector<float> encode_and_decode(rt::Session& session, const std::vector<float>& gradient,
                                     std::uint64_t step) {
  EXPECT_TRUE(give_inputs(session));
  const auto payload = session.encode(gradient, step);
  EXPECT_TRUE(payload) << (payload ? "" : payload.error().message);
  std::vector<float> out(gradient.size());
  if (!payload) return out;
  const std::vector<std::uint8_t> kept(payload->begin(), payload->end());
  const auto status = session.decode(kept, out, step);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return out;
}

std::vector<float> gradient_of(const Extreme& extreme, std::size_t num_elems, std::uint64_t step) {
  std::vector<float> gradient(num_elems);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = extreme.value(i, step);
  return gradient;
}

// fp16 and bf16 turn values above their largest number into infinities. fp16 does so because a loss
// scaler must see the overflow.
bool sends_infinities(const ProgramFile& program) {
  return program.text.find("fp16") != std::string::npos ||
         program.text.find("bf16") != std::string::npos;
}

// Runs each program of the library on all kinds of extreme gradients, four steps of each kind. All
// steps on a tensor size share one session, so each kind starts with the states that the kinds
// before it left.
class Extremes : public ::testing::TestWithParam<ProgramFile> {};

TEST_P(Extremes, KeepStatesAndDecodingFinite) {
  const Loaded loaded = load(GetParam());
  for (const std::size_t num_elems : {1, 7, 1500}) {
    const auto session = open(loaded, num_elems);
    ASSERT_NE(session, nullptr);
    std::uint64_t step = 0;
    for (const Extreme& extreme : kExtremes) {
      for (int repeat = 0; repeat < 4; ++repeat, ++step) {
        SCOPED_TRACE(::testing::Message()
                     << extreme.name << " of " << num_elems << ", step " << step);
        const auto out = encode_and_decode(*session, gradient_of(extreme, num_elems, step), step);
        EXPECT_TRUE(has_finite_states(*session));
        if (!sends_infinities(GetParam())) EXPECT_TRUE(std::ranges::all_of(out, is_finite));
      }
    }
  }
}

// Programs that send signs, or a step of their own, whatever the gradient's size.
bool has_own_magnitude(const std::string& name) {
  return name.starts_with("signum") || name.starts_with("tbq") || name.starts_with("lion") ||
         name.find("signsgd") != std::string::npos;
}

float largest_of(const std::vector<float>& values) {
  float largest = 0;
  for (const float x : values) largest = std::max(largest, std::fabs(x));
  return largest;
}

// No power of two makes the reciprocal of a block's size overflow: what decodes grows with what was
// encoded, alone and beside blocks of other sizes, whose largest element it does not exceed.
TEST_P(Extremes, DecodeNoMoreThanWasEncoded) {
  constexpr std::size_t kNumElems = 4096;
  const Loaded loaded = load(GetParam());
  if (has_own_magnitude(GetParam().name) || sends_infinities(GetParam())) GTEST_SKIP();
  float factor = 0;
  for (int exponent = 0; exponent > -160; exponent -= exponent < -100 ? 3 : 20) {
    for (const bool is_mixed : {false, true}) {
      std::vector<float> gradient(kNumElems);
      for (std::size_t i = 0; i < kNumElems; ++i) {
        const bool is_large = is_mixed && i < kNumElems / 2;
        gradient[i] = std::ldexp(std::sin(static_cast<float>(i)) + 0.1f, is_large ? 0 : exponent);
      }
      const auto session = open(loaded, kNumElems);
      const auto out = encode_and_decode(*session, gradient, 0);
      const float most = largest_of(out) / std::max(largest_of(gradient), kSmallest);
      if (exponent == 0) factor = std::max(factor, most);
      // Subnormal numbers round to twice or half of themselves, in each of several operations.
      EXPECT_LE(most, 5 * factor) << "2^" << exponent << (is_mixed ? ", mixed" : "");
    }
  }
}

std::vector<ProgramFile> all_of_the_library() {
  std::vector<ProgramFile> all = compressors_of(CINCH_STDLIB_DIR);
  for (ProgramFile& composition : library_compositions()) all.push_back(std::move(composition));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Library, Extremes, ::testing::ValuesIn(all_of_the_library()),
                         [](const auto& program) { return program.param.name; });

// Checks that a gradient multiplied by a power of two decodes to the same multiple, bit for bit.
void expect_scales(const std::string& path, const std::vector<int>& exponents) {
  constexpr std::size_t kNumElems = 1500;
  std::vector<float> gradient(kNumElems);
  for (std::size_t i = 0; i < kNumElems; ++i) {
    gradient[i] = std::sin(static_cast<float>(i)) + 0.1f;
  }
  const Loaded loaded = load(library_program(path));
  ASSERT_NE(loaded, nullptr);
  const auto expected = encode_and_decode(*open(loaded, kNumElems), gradient, 0);
  for (const int exponent : exponents) {
    std::vector<float> scaled = gradient;
    for (float& x : scaled) x = std::ldexp(x, exponent);
    const auto out = encode_and_decode(*open(loaded, kNumElems), scaled, 0);
    for (std::size_t i = 0; i < kNumElems; ++i) {
      ASSERT_EQ(out[i], std::ldexp(expected[i], exponent))
          << path << " 2^" << exponent << " at " << i;
    }
  }
}

TEST(Scales, NeitherOverflowNorVanish) {
  expect_scales("quantize/qsgd.cinch", {-100, -70, -41, -40, -39, 39, 40, 41, 63, 100, 120});
  expect_scales("quantize/eden.cinch", {-100, -60, 60, 100});
  expect_scales("quantize/minmax.cinch", {-100, -70, 70, 120});
  expect_scales("quantize/terngrad.cinch", {-40, 40});
  expect_scales("sign/onebit.cinch", {-100, 100});
  expect_scales("sign/ef_sign.cinch", {-100, 100});
}

// TernGrad clips at a multiple of the standard deviation. A single element and equal elements have
// the deviation 0. They must be sent unclipped.
TEST(Scales, TerngradSendsWhatHasNoDeviation) {
  const Loaded loaded = load(library_program("quantize/terngrad.cinch"));
  ASSERT_NE(loaded, nullptr);
  for (const std::size_t num_elems : {1, 5, 3000}) {
    for (const float value : {0.25f, -3.0f, 1e-30f}) {
      const std::vector<float> gradient(num_elems, value);
      EXPECT_EQ(encode_and_decode(*open(loaded, num_elems), gradient, 0), gradient);
    }
  }
}

}  // namespace
}  // namespace cinch::testing
