// Golden vectors of wrappers and of compressors that pack, rotate, hash or estimate. As in
// golden_test.cpp, scripts outside this project computed the expected values from the papers'
// formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr const char* kHalfRoundingOfAll = R"(
fn stochastic_round(x: [f32; ..]) -> [f32; ..] {
  let low = floor(abs(x))
  sign(x) * (low + select(abs(x) - low > 0.5, 1.0, 0.0))
}
)";
constexpr const char* kKey = "fn random_bits(m: u32) -> [u32; 1] { fill(12345 as u32, 1) }\n";

std::vector<float> times(std::vector<float> x, float factor) {
  for (float& value : x) value *= factor;
  return x;
}

// The four largest elements are 1, 2.5, 3 and 4, with the mean 2.625. The four least have the mean
// -1.96875, which is smaller in magnitude. So the program sends the largest.
TEST(GoldenVectors, Sbc) {
  Golden golden("sbc", library_text("sparsify/sbc.cinch"), {{"ratio", 0.25}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(2.625f));
  std::vector<float> decoded(16);
  for (const int i : {0, 4, 7, 11}) decoded[static_cast<std::size_t>(i)] = 2.625f;
  EXPECT_EQ(golden.decoded(), decoded);
  golden.encode(1, times(kV, -1));
  EXPECT_THAT(golden.floats(0), ElementsAre(-2.625f));
  EXPECT_EQ(golden.decoded(1), times(decoded, -1));
}

// Three bytes hold five elements each. The fourth holds element 15, which is left over. It rounds
// to 0, and 121 encodes zeros only.
TEST(GoldenVectors, ThreeLc) {
  Golden golden("three_lc", library_text("quantize/three_lc.cinch"));
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(120, 157, 124, 121));
  EXPECT_THAT(golden.decoded(), ElementsAre(0, 0, 0, 0, 4, 0, 0, 4, 0, 0, 0, 4, -4, 0, 0, 0));
  EXPECT_THAT(golden.state(0), ElementsAre(1, -2, 0.5f, -0.25f, -1, 0, -0.125f, -1.5f, -1.5f, 0.75f,
                                           -0.0625f, 0, 0.5f, 0.375f, -0.875f, 0.1875f));
  golden.encode(1, times(kV, 2));
  EXPECT_THAT(golden.floats(0), ElementsAre(8.0f));
}

// 203 elements take 40 bytes of five elements and one byte for the last three. Byte b of the 40
// holds elements b, b + 40, ... b + 160. Elements 83 and 7 make bytes 3 and 7 nonzero: 130 and 40.
// Each of them follows a run of 3 zero bytes, encoded as 244. Then come 32 zero bytes as runs of
// 14, 14 and 4: 255, 255 and 245. The last byte, 148, holds element 201.
TEST(GoldenVectors, ThreeLcRunsOfZeros) {
  std::vector<float> gradient(203);
  gradient[7] = -2;
  gradient[83] = gradient[201] = 2;
  Golden golden("three_lc", library_text("quantize/three_lc.cinch"), {}, gradient.size());
  golden.encode(0, gradient);
  EXPECT_THAT(golden.bytes(1), ElementsAre(244, 130, 244, 40, 255, 255, 245, 148));
  EXPECT_EQ(golden.decoded(), gradient);
}

TEST(GoldenVectors, Cgx) {
  const std::string text = kHalfRoundingOfAll + library_text("quantize/cgx.cinch");
  Golden whole("cgx", text, {{"bits", 2}, {"bucket", 16}});
  whole.encode();
  EXPECT_THAT(whole.floats(0), ElementsAre(2.5f));
  EXPECT_THAT(whole.floats(1), ElementsAre(-3.5f));
  EXPECT_THAT(whole.integers(2), ElementsAre(2, 1, 2, 1, 3, 1, 1, 2, 1, 2, 1, 3, 0, 2, 1, 1));
  Golden halves("cgx", text, {{"bits", 2}, {"bucket", 8}});
  halves.encode();
  EXPECT_THAT(halves.floats(0), Pointwise(FloatNear(1e-6f), {1.6666666f, 2.5f}));
  EXPECT_THAT(halves.floats(1), ElementsAre(-2.0f, -3.5f));
  EXPECT_THAT(halves.integers(2), ElementsAre(2, 0, 1, 1, 3, 1, 1, 3, 1, 2, 1, 3, 0, 2, 1, 1));
}

// With `clip` 0.5 the range ends at 2, half of the largest magnitude. A step is 2 / 7. Codes reach
// from -8 to 7.
TEST(GoldenVectors, Lpc) {
  const std::string text = kHalfRoundingOfAll + library_text("quantize/lpc.cinch");
  Golden whole("lpc", text);
  whole.encode();
  EXPECT_THAT(whole.floats(0), ElementsAre(4.0f / 7));
  EXPECT_THAT(whole.integers(1), ElementsAre(2, -3, 1, 0, 5, 0, 0, 4, -3, 1, 0, 7, -6, 1, -2, 0));
  Golden clipped("lpc", text, {{"clip", 0.5}});
  clipped.encode();
  EXPECT_THAT(clipped.floats(0), ElementsAre(2.0f / 7));
  EXPECT_THAT(clipped.integers(1),
              ElementsAre(3, -7, 2, -1, 7, 0, 0, 7, -5, 3, 0, 7, -8, 1, -3, 1));
}

// Each step adds half of the accumulated error to the gradient (`part`) and halves the error that
// it keeps (`decay`).
TEST(GoldenVectors, Ecq) {
  Golden golden("ecq", kHalfRoundingOfAll + library_text("quantize/ecq.cinch"),
                {{"part", 0.5}, {"decay", 0.5}});
  golden.encode();
  EXPECT_THAT(golden.integers(1), ElementsAre(2, -3, 1, 0, 5, 0, 0, 4, -3, 1, 0, 7, -6, 1, -2, 0));
  golden.encode(1);
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(golden.integers(1), ElementsAre(2, -4, 1, -1, 5, 0, 0, 5, -2, 1, 0, 7, -6, 0, -1, 0));
  EXPECT_THAT(golden.state(0),
              Pointwise(FloatNear(2e-6f), {-0.214286f, 0.142857f, -0.107143f, 0.196429f, 0.214286f,
                                           0.0f, -0.1875f, -0.25f, -0.25f, 0.267857f, -0.09375f,
                                           0.0f, -0.107143f, 0.276786f, -0.169643f, 0.28125f}));
}

// Element 9 takes a half word. A byte would lose its part 2^-9, which exceeds the error bound
// 2^-10. The half word loses only 2^-17. All other elements are decoded exactly.
TEST(GoldenVectors, Inceptionn) {
  Golden golden("inceptionn", library_text("quantize/inceptionn.cinch"));
  std::vector<float> gradient = times(kV, 0.25f);
  gradient[9] = 0.1875f + 0x1p-9f + 0x1p-17f;
  golden.encode(0, gradient);
  EXPECT_THAT(golden.integers(0), ElementsAre(1, 1, 1, 1, 1, 0, 1, 1, 1, 2, 1, 3, 1, 1, 1, 1));
  EXPECT_THAT(golden.integers(1),
              ElementsAre(32, -64, 16, -8, 96, -4, 80, -48, -2, -112, 12, -28, 6));
  EXPECT_THAT(golden.integers(2), ElementsAre(6208));
  EXPECT_THAT(golden.floats(3), ElementsAre(1.0f));
  gradient[9] = 0.189453125f;
  EXPECT_EQ(golden.decoded(), gradient);
}

// The script found Lloyd's levels of the normal distribution by iteration. It rotated as for DRIVE:
// signs from a hash with the key 12345, then a 16 by 16 Hadamard matrix.
TEST(GoldenVectors, Eden) {
  const std::string text = kKey + library_text("quantize/eden.cinch");
  const double scales[] = {2.850019271566949, 2.267100395744452, 1.7548874446499918};
  const double least[] = {1.811430500099889, 2.0020815375365846, 1.741965933622528};
  const std::vector<int> codes[] = {{0, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0},
                                    {0, 0, 0, 2, 1, 3, 3, 0, 1, 2, 0, 1, 1, 0, 0, 0},
                                    {4, 6, 2, 8, 3, 9, 15, 0, 5, 10, 4, 5, 1, 4, 4, 2}};
  for (int i = 0; i < 3; ++i) {
    const double bits = i == 2 ? 4 : i + 1;
    Golden golden("eden", text, {{"bits", bits}, {"block", 16}});
    golden.encode();
    EXPECT_NEAR(golden.floats(1).at(0), scales[i], 3e-6) << bits;
    EXPECT_THAT(golden.integers(2), ElementsAreArray(codes[i])) << bits;
    Golden biased("eden", text, {{"bits", bits}, {"block", 16}, {"unbiased", 0}});
    biased.encode();
    EXPECT_NEAR(biased.floats(1).at(0), least[i], 3e-6) << bits;
  }
  Golden golden("eden", text, {{"block", 16}});
  golden.encode();
  EXPECT_THAT(
      golden.decoded(),
      Pointwise(FloatNear(2e-5f), {0.67097f, -2.02878f, 0.59648f, -0.14496f, 3.01839f, 0.17294f,
                                   0.20736f, 2.49239f, -1.55288f, 0.73215f, -0.20615f, 3.9283f,
                                   -3.55529f, 0.56327f, -1.08927f, 0.26854f}));
}

TEST(GoldenVectors, DistEfSgdm) {
  Golden golden("dist_ef_sgdm", library_text("sign/dist_ef_sgdm.cinch"),
                {{"block", 8}, {"momentum", 0.5}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(1.7578125f, 2.109375f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0x4a, 0x55));
  golden.encode(1);
  EXPECT_THAT(golden.floats(0), ElementsAre(3.09765625f, 3.53515625f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0x26, 0xf1));
  EXPECT_THAT(golden.state(1), ElementsAre(-1.60546875f, -1.64453125f, 2.96484375f, -2.15234375f,
                                           4.89453125f, 1.33984375f, -1.74609375f, 3.26953125f,
                                           0.76953125f, -3.20703125f, -1.62890625f, 7.35546875f,
                                           -5.73046875f, 2.64453125f, 2.80078125f, 2.03515625f));
}

// Both steps have the gradient g = kV. The program sends elements with r^2 > v, where r is the
// accumulated gradient and v its variance. In the first step both are g^2, so it sends nothing. In
// the second r^2 is 4 g^2 and v is (1 + decay) g^2, so it sends all elements that are not zero. It
// rounds magnitudes to the nearest power of two and ties up: 7 and 6 become 8, 3 becomes 4.
TEST(GoldenVectors, VarianceBased) {
  Golden golden("variance_based", library_text("sparsify/variance_based.cinch"), {{"alpha", 1}});
  golden.encode();
  EXPECT_EQ(golden.decoded(), std::vector<float>(16));
  golden.encode(1);
  EXPECT_THAT(golden.floats(0), ElementsAre(8.0f));
  EXPECT_THAT(golden.integers(2), ElementsAre(2, 1, 3, 4, 0, 5, 1, 1, 2, 6, 0, 0, 3, 2, 4));
  EXPECT_THAT(golden.decoded(1),
              ElementsAre(2, -4, 1, -0.5f, 8, 0, -0.25f, 4, -4, 2, -0.125f, 8, -8, 1, -2, 0.5f));
  EXPECT_EQ(golden.state(0), std::vector<float>(16));
}

// The gradient has eight positive and seven negative elements. A quarter of either, rounded up, is
// two. The program sends the mean of 3 and 4 and that of -2 and -3.5.
TEST(GoldenVectors, AdaQ) {
  Golden golden("adaq", library_text("sparsify/adaq.cinch"), {{"ratio", 0.25}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(-2.75f));
  EXPECT_THAT(golden.floats(1), ElementsAre(3.5f));
  EXPECT_THAT(golden.decoded(),
              ElementsAre(0, -2.75f, 0, 0, 3.5f, 0, 0, 0, 0, 0, 0, 3.5f, -2.75f, 0, 0, 0));
}

// Eight elements reach the threshold. Elements 1 and 4 share their slots with 8 and 14. The element
// with the higher index takes a slot, so six are sent, in the order of their slots.
TEST(GoldenVectors, Dragonn) {
  Golden golden("dragonn", kKey + library_text("sparsify/dragonn.cinch"), {{"ratio", 0.5}});
  golden.encode();
  EXPECT_THAT(golden.integers(1), ElementsAre(11, 0, 14, 8, 7, 12));
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f, 1.0f, -0.875f, -1.5f, 2.5f, -3.5f));
}

// With 16 bits for each of the four largest elements the Bloom filter has no false positives. With
// 4 bits it has six: elements 1, 2, 5, 9, 13 and 15. Their values are sent, too.
TEST(GoldenVectors, Bloom) {
  const std::string text = library_text("sparsify/bloom.cinch");
  Golden golden("bloom", text, {{"ratio", 0.25}});
  golden.encode();
  EXPECT_THAT(golden.bytes(0), ElementsAre(0x86, 0x14, 0x03, 0x20, 0x20, 0x08, 0x81, 0x88));
  EXPECT_THAT(golden.floats(1), ElementsAre(3.0f, 2.5f, 4.0f, -3.5f));
  Golden small("bloom", text, {{"ratio", 0.25}, {"bits", 4}});
  small.encode();
  EXPECT_THAT(small.bytes(0), ElementsAre(0x9f, 0xf6));
  std::vector<float> decoded = kV;
  for (const int i : {0, 3, 6, 8, 10, 14}) decoded[static_cast<std::size_t>(i)] = 0;
  EXPECT_EQ(small.decoded(), decoded);
}

TEST(GoldenVectors, SketchMl) {
  std::vector<float> gradient(400);
  for (int i = 0; i < 400; ++i) gradient[i] = static_cast<float>(i * 73 % 401 - 200) / 16;
  Golden golden("sketchml", library_text("sparsify/sketchml.cinch"), {{"ratio", 0.5}}, 400);
  golden.encode(0, gradient);
  EXPECT_EQ(golden.floats(0).size(), 100u);
  const auto cells = golden.integers(1);
  ASSERT_EQ(cells.size(), 128u);
  EXPECT_THAT(std::vector<int>(cells.begin(), cells.begin() + 16),
              ElementsAre(2, 3, 1, 11, 3, 2, 0, 13, 0, 1, 1, 2, 4, 2, 7, 0));
  EXPECT_THAT(std::vector<int>(cells.begin() + 64, cells.begin() + 80),
              ElementsAre(9, 9, 0, 1, 4, 2, 0, 4, 0, 2, 1, 0, 9, 3, 2, 10));
  const auto decoded = golden.decoded();
  EXPECT_THAT(std::vector<float>(decoded.begin(), decoded.begin() + 13),
              ElementsAre(-12.5f, -7.40625f, 0, 0, 0, 10.3125f, -9.625f, 0, 0, 0, 7.71875f,
                          -12.4375f, -7.84375f));
  double sum = 0;
  for (const float x : decoded) sum += std::abs(x);
  EXPECT_EQ(sum, 1833.0625);
}

// The test replaces `random_bits` so that the block begins at 14 = 16 * 0xe0000000 / 2^32. It holds
// elements 14, 15, 0 and 1.
TEST(GoldenVectors, RandomKOfABlock) {
  std::string text = library_text("sparsify/randomk_block.cinch");
  const std::string shared = ", shared: true";
  for (auto at = text.find(shared); at != std::string::npos; at = text.find(shared)) {
    text.erase(at, shared.size());
  }
  text = "fn random_bits(m: u32) -> [u32; 1] { fill(0xe0000000 as u32, 1) }\n" + text;
  Golden golden("randomk_block", text, {{"ratio", 0.25}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(-0.875f, 0.1875f, 1.0f, -2.0f));
  EXPECT_THAT(golden.decoded(),
              ElementsAre(1, -2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.875f, 0.1875f));
}

// The draw may choose any four of 16 elements. randomk_own sends them unchanged. randomk_unbiased
// multiplies them by 16 / 4.
TEST(GoldenVectors, RandomKOfOwnOrUnbiased) {
  for (const bool is_own : {true, false}) {
    const std::string name = is_own ? "randomk_own" : "randomk_unbiased";
    Golden golden(name, library_text("sparsify/" + name + ".cinch"), {{"ratio", 0.25}});
    std::vector<float> gradient(16);
    for (int i = 0; i < 16; ++i) gradient[i] = static_cast<float>(i + 1);
    golden.encode(0, gradient);
    const auto decoded = golden.decoded();
    int kept = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      if (decoded[i] == 0) continue;
      EXPECT_EQ(decoded[i], gradient[i] * (is_own ? 1 : 4));
      ++kept;
    }
    EXPECT_EQ(kept, 4) << name;
  }
}

std::string wrapped(const std::string& expression) {
  return "import std.wrap\nimport std.sparsify\ncompressor sent = " + expression + "\n";
}

// The velocities are kV and 1.5 kV. The program sends kV plus half the velocity: 1.5 kV and 1.75
// kV. Element 11 of kV, the largest, is 4.
TEST(GoldenVectors, NesterovOfTopOne) {
  Golden golden("sent", wrapped("nesterov(topk(ratio: 0.0625), factor: 0.5)"));
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(6.0f));
  golden.encode(1);
  EXPECT_THAT(golden.floats(0), ElementsAre(7.0f));
}

TEST(GoldenVectors, ScaleUnbiasedOfTopOne) {
  Golden golden("sent", wrapped("scale_unbiased(topk(ratio: 0.0625), variance: 3)"));
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f));
  EXPECT_EQ(golden.decoded()[11], 1.0f);
}

// The program sends nothing in the first step of each two. In the second it sends the largest
// element of the sum of the gradients so far, less what it sent before.
TEST(GoldenVectors, LocalStepsOfTopOne) {
  Golden golden("sent", wrapped("local_steps(topk(ratio: 0.0625), every: 2)"));
  const float sent[] = {8, -14};
  const std::size_t index[] = {11, 12};
  for (std::uint64_t round = 0; round < 2; ++round) {
    golden.encode(2 * round);
    EXPECT_THAT(golden.floats(0), ElementsAre());
    EXPECT_THAT(golden.decoded(2 * round), Each(0.0f));
    golden.encode(2 * round + 1);
    EXPECT_THAT(golden.floats(0), ElementsAre(sent[round]));
    EXPECT_EQ(golden.decoded(2 * round + 1)[index[round]], sent[round]);
  }
}

// The first two steps of each three add kV to the residual and send its largest element. The third
// sends kV itself and leaves the residual as it was.
TEST(GoldenVectors, CorrectEveryOfTopOne) {
  Golden golden("sent", wrapped("correct_every(topk(ratio: 0.0625), every: 3)"));
  std::vector<float> residual(kV.size());
  const std::size_t index[] = {11, 12, 0, 4, 11};
  for (const std::uint64_t step : {0, 1, 2, 3, 4}) {
    std::vector<float> expected = kV;
    if (step != 2) {
      for (std::size_t i = 0; i < kV.size(); ++i) residual[i] += kV[i];
      expected.assign(kV.size(), 0);
      std::swap(expected[index[step]], residual[index[step]]);
    }
    golden.encode(step);
    EXPECT_EQ(golden.decoded(step), expected) << step;
    EXPECT_EQ(golden.state(0), residual) << step;
  }
}

// Each step adds half of kV to the residual and sends the largest element of the sum.
TEST(GoldenVectors, Ef14OfTopOne) {
  Golden golden("sent", wrapped("ef14(topk(ratio: 0.0625), rate: 0.5)"));
  const float sent[] = {2, -3.5f, 4.5f};
  const int index[] = {11, 12, 4};
  for (std::uint64_t step = 0; step < 3; ++step) {
    golden.encode(step);
    EXPECT_THAT(golden.floats(0), ElementsAre(sent[step]));
    EXPECT_THAT(golden.indices(1, 0), ElementsAre(index[step]));
  }
}

// The momenta are kV / 2 and 3 kV / 4. In the second step element 11 has the momentum 3 and the
// estimate 2, so its change is only 1. Element 12 changes most, from 0 to -2.625.
TEST(GoldenVectors, Ef21SgdmOfTopOne) {
  Golden golden("sent", wrapped("ef21_sgdm(topk(ratio: 0.0625), eta: 0.5)"));
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(2.0f));
  EXPECT_EQ(golden.finished(golden.decoded())[11], 2.0f);
  golden.encode(1);
  EXPECT_THAT(golden.floats(0), ElementsAre(-2.625f));
  const auto update = golden.finished(golden.decoded(1), 1);
  EXPECT_EQ(update[11], 2.0f);
  EXPECT_EQ(update[12], -2.625f);
}

}  // namespace
}  // namespace cinch::testing
