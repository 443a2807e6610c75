// Golden vectors of programs from newer papers. As in golden_test.cpp, scripts outside this project
// computed the expected values from the papers' formulas; tests/python/papers_test.py compares the
// programs over ranks and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>

#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

// kHalfRounding, of arrays of any shape, behind the imports of a program of the library.
std::string with_half_rounding(const std::string& path) {
  std::string rounding = kHalfRounding;
  for (auto at = rounding.find("; m]"); at != std::string::npos; at = rounding.find("; m]")) {
    rounding.replace(at, 4, "; ..]");
  }
  std::string text = library_text(path);
  return text.insert(text.find("///"), rounding + "\n");
}

// Blocks of eight. The first step's codes are those of int4_block. Half of what they lose is kept:
// the second step's 1.0716 and -1.9283 are 1 and -2, of which half of 1 - 0.8571 and of -2 + 2.1429
// were lost, in 127ths of the largest. So 2.333 steps become 2.5007, which is 3, and not 2.
TEST(GoldenVectors, LoCo) {
  Golden golden("loco", library_text("quantize/loco.cinch"), {{"block", 8}, {"beta", 0.5}});
  const std::vector<float> scales = {3.0f / 7, 4.0f / 7};
  golden.encode();
  EXPECT_THAT(golden.floats(0), Pointwise(FloatNear(1e-7f), scales));
  EXPECT_THAT(golden.integers(1), ElementsAre(2, -5, 1, -1, 7, 0, 0, 6, -3, 1, 0, 7, -6, 1, -2, 0));
  EXPECT_THAT(golden.state(1), Pointwise(FloatNear(1e-9f), {0.000703037f, 0.001054556f}));
  golden.encode(1);
  EXPECT_THAT(golden.floats(0), Pointwise(FloatNear(1e-7f), scales));
  EXPECT_THAT(golden.integers(1), ElementsAre(3, -4, 1, 0, 7, 0, 0, 6, -2, 1, 0, 7, -6, 0, -1, 0));
}

// In the step of a reset the average of errors becomes 0.
TEST(GoldenVectors, LoCoForgets) {
  Golden golden("loco", library_text("quantize/loco.cinch"), {{"block", 8}, {"reset", 2}});
  golden.encode();
  EXPECT_GT(golden.state(1)[0], 0);
  const auto first = golden.integers(1);
  golden.encode(1);
  EXPECT_THAT(golden.state(1), ElementsAre(0, 0));
  golden.encode(2);
  EXPECT_EQ(golden.integers(1), first);
}

TEST(GoldenVectors, Sdp4Bit) {
  Golden golden("sdp4bit", with_half_rounding("quantize/sdp4bit.cinch"), {{"bits", 3}});
  golden.encode();
  EXPECT_THAT(golden.floats(0),
              Pointwise(FloatNear(1e-11f), {2.784232951f * 0x1p-16f, 3.977475644f * 0x1p-16f}));
  EXPECT_THAT(golden.integers(1),
              ElementsAre(4, 4, -1, 7, -5, 3, -2, -3, 0, -7, -4, -1, 4, -1, -1, 3));
  EXPECT_THAT(golden.decoded(),
              Pointwise(FloatNear(1e-6f),
                        {0.984375f, -2.109375f, 0.703125f, -0.140625f, 2.953125f, -0.140625f,
                         -0.140625f, 2.390625f, -1.40625f, 1.004464286f, -0.200892857f,
                         3.816964286f, -3.415178571f, 0.602678571f, -0.602678571f, 0.200892857f}));
}

// Three bits have four levels, 0, 1/3, 2/3 and 1 at first. Magnitudes lie in the cells 64, 128, 32,
// 16 ... of 256. Of the twelve below 2/3 the condition wants 3.8 above the first level, and of the
// seven between it and 1 it wants 3.5 above the second.
TEST(GoldenVectors, Alq) {
  Golden golden("alq", with_half_rounding("quantize/alq.cinch"), {{"bits", 3}, {"bucket", 16}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(0, 0.251953125f, 0.626953125f, 1));
  EXPECT_THAT(golden.floats(1), ElementsAre(4.0f));
  EXPECT_THAT(golden.bytes(2), ElementsAre(0x4a, 0x55));
  EXPECT_THAT(golden.integers(3), ElementsAre(1, 2, 0, 0, 2, 0, 0, 2, 1, 1, 0, 3, 3, 0, 1, 0));
  const float low = 4 * 0.251953125f, high = 4 * 0.626953125f;
  EXPECT_THAT(golden.decoded(),
              ElementsAre(low, -high, 0, 0, high, 0, 0, high, -low, low, 0, 4, -4, 0, -low, 0));
}

// The gradients are kV and -kV / 2. The second step's codes are those of the difference between
// -kV / 2 and what the first step sent.
TEST(GoldenVectors, AqSgd) {
  Golden golden("aq_sgd", with_half_rounding("quantize/aq_sgd.cinch"), {{"bucket", 8}});
  std::vector<float> gradient = kV;
  golden.encode();
  EXPECT_THAT(golden.integers(1), ElementsAre(2, -5, 1, -1, 7, 0, 0, 6, -3, 1, 0, 7, -6, 1, -2, 0));
  const auto first = golden.decoded();
  EXPECT_EQ(golden.finished(first), first);
  for (float& x : gradient) x *= -0.5f;
  golden.encode(1, gradient);
  EXPECT_THAT(golden.floats(0), Pointwise(FloatNear(1e-7f), {4.5f / 7.0f, 6.0f / 7.0f}));
  EXPECT_THAT(golden.integers(1),
              ElementsAre(-2, 5, -1, 1, -7, 0, 0, -6, 3, -1, 0, -7, 6, -1, 2, 0));
  EXPECT_THAT(
      golden.finished(golden.decoded(1), 1),
      Pointwise(FloatNear(1e-6f), {-0.428571429f, 1.071428571f, -0.214285714f, 0.214285714f, -1.5f,
                                   0.0f, 0.0f, -1.285714286f, 0.857142857f, -0.285714286f, 0.0f,
                                   -2.0f, 1.714285714f, -0.285714286f, 0.571428571f, 0.0f}));
}

// Exponents 124 to 129 occur 2, 2, 3, 2, 4 and 1 times, and 0 and 123 once each. Huffman's codes of
// 3, 3, 2, 3, 2, 4, 5 and 5 bits take 46 bits.
TEST(GoldenVectors, Bf16Lossless) {
  Golden golden("bf16_lossless", library_text("quantize/bf16_lossless.cinch"));
  golden.encode();
  std::vector<int> lengths(128);
  lengths[0] = 0x05, lengths[61] = 0x50, lengths[62] = 0x33, lengths[63] = 0x32, lengths[64] = 0x42;
  EXPECT_THAT(golden.bytes(0), ElementsAreArray(lengths));
  EXPECT_THAT(golden.bytes(1), ElementsAreArray({0x00, 0x80, 0x00, 0x80, 0x40, 0x00, 0x80, 0x20,
                                                 0xc0, 0x40, 0x80, 0x00, 0xe0, 0x40, 0xe0, 0x40}));
  EXPECT_THAT(golden.bytes(2), ElementsAre(46, 0, 0, 0, 0x93, 0xfa, 0xe2, 0xf8, 0x67, 0x09, 0, 0));
  EXPECT_EQ(golden.decoded(), kV);
}

// The gradients are kV, -2 kV and kV / 4. The mixes are 0.5, -0.625 and -0.53125 times kV: the
// third step goes on against its gradient. Element 5 of kV is zero, whose sign alternates.
TEST(GoldenVectors, LionMaVo) {
  Golden golden("lion_mavo", library_text("sign/lion_mavo.cinch"),
                {{"beta1", 0.5}, {"beta2", 0.25}});
  const float factors[] = {1, -2, 0.25f}, momenta[] = {0.75f, -1.3125f, -0.140625f};
  const std::vector<int> bits[] = {{0x6a, 0x55}, {0x95, 0xaa}, {0xb5, 0xaa}};
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<float> gradient = kV, momentum = kV;
    for (float& x : gradient) x *= factors[step];
    for (float& x : momentum) x *= momenta[step];
    golden.encode(step, gradient);
    EXPECT_THAT(golden.bytes(0), ElementsAreArray(bits[step]));
    EXPECT_EQ(golden.state(0), momentum);
  }
  EXPECT_THAT(golden.finished(std::vector<float>(16, -2)), ::testing::Each(-1.0f));
}

TEST(GoldenVectors, MsTopK) {
  Golden golden("mstopk", library_text("sparsify/mstopk.cinch"), {{"ratio", 0.25}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(3.0f, 2.5f, 4.0f, -3.5f));
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(4, 7, 11, 12));
  // No threshold tells equal magnitudes apart: four that follow each other go, from a random place
  // on.
  golden.encode(1, std::vector<float>(16, -2));
  EXPECT_THAT(golden.floats(0), ElementsAre(-2.0f, -2.0f, -2.0f, -2.0f));
}

// A block of 64 of which 16 elements are kV. What the first step does not send lies between -2 and
// 1, in 15 steps of 0.2: -2 and 1 are kept as they are, zeros too, -0.25 as -0.2 and -1.5 as -1.6.
TEST(GoldenVectors, MicroAdam) {
  Golden golden("microadam", library_text("sparsify/microadam.cinch"), {{"kept", 4}, {"bits", 6}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(3.0f, 2.5f, 4.0f, -3.5f));
  EXPECT_THAT(golden.integers(1), ElementsAre(4, 7, 11, 12));
  golden.encode(1);
  EXPECT_THAT(golden.integers(1), ElementsAre(1, 8, 11, 12));
  EXPECT_THAT(golden.floats(0), Pointwise(FloatNear(1e-6f), {-4.0f, -3.1f, 4.0f, -3.5f}));
  golden.encode(2);
  EXPECT_THAT(golden.integers(1), ElementsAre(4, 7, 11, 12));
  EXPECT_THAT(golden.floats(0),
              Pointwise(FloatNear(1e-5f), {6.0f, 4.876666667f, 3.883333333f, -3.616666667f}));
}

// The sample is all of the gradient in a random order, so its four largest are sent whatever the
// draw: 3, 2.5, 4 and -3.5 in steps of 4 / 7.
TEST(GoldenVectors, Cocktail) {
  Golden golden("cocktail", library_text("sparsify/cocktail.cinch"),
                {{"sample", 1}, {"ratio", 0.25}});
  golden.encode();
  std::vector<float> expected(16);
  expected[4] = 5 * 4.0f / 7;
  expected[7] = 4 * 4.0f / 7;
  expected[11] = 4;
  expected[12] = -6 * 4.0f / 7;
  EXPECT_THAT(golden.decoded(), Pointwise(FloatNear(1e-6f), expected));
}

std::string around_threshold(const std::string& wrapper) {
  return "import std.wrap\nimport std.threshold\ncompressor sent = " + wrapper + "\n";
}

// Elements 4, 11 and 12 of kV reach 2.75: 3, 4 and -3.5. Half of what is sent enters the memory,
// and all of it the update beside the memory. So 11 is sent again as 2, which is too little.
TEST(GoldenVectors, DianaOfThreshold) {
  Golden golden("sent", around_threshold("diana(threshold(tau: 2.75), rate: 0.5)"));
  std::vector<float> update(16), memory(16);
  for (const int i : {4, 11, 12}) {
    update[i] = kV[i];
    memory[i] = kV[i] / 2;
  }
  golden.encode();
  EXPECT_EQ(golden.finished(golden.decoded()), update);
  EXPECT_EQ(golden.state(0), memory);
  golden.encode(1);
  EXPECT_THAT(golden.floats(1), ElementsAre());
  EXPECT_EQ(golden.finished(golden.decoded(1), 1), memory);
}

// What the first step does not send is an error that counts half: in the second step 2.5 is worth
// 3.75 and -2 is worth -3, in the third -1.5 is worth -3, too.
TEST(GoldenVectors, EControlOfThreshold) {
  Golden golden("sent", around_threshold("econtrol(threshold(tau: 2.75), strength: 0.5)"));
  std::vector<float> estimate(16);
  const std::vector<std::vector<std::pair<int, float>>> sent = {
      {{4, 3.0f}, {11, 4.0f}, {12, -3.5f}}, {{1, -3.0f}, {7, 3.75f}}, {{8, -3.0f}}};
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (const auto& [index, value] : sent[step]) estimate[index] += value;
    golden.encode(step);
    EXPECT_EQ(golden.finished(golden.decoded(step), step), estimate);
  }
}

// Two elements are kept. At half the learning rate what the first step lost counts twice: 3 + 2 * 3
// and 2.5 + 2 * 2.5 are the largest of the second step. The state is what was lost times the rate.
TEST(GoldenVectors, ErrorFeedbackFollowsTheLearningRate) {
  Golden golden("followed",
                "import std.wrap\nimport std.sparsify\n\n"
                "compressor followed = ef_lr(topk(ratio: 0.125))\n");
  ASSERT_TRUE(golden.session().set_parameter("lr", 1));
  golden.encode();
  std::vector<float> sent(kV.size());
  sent[11] = 4;
  sent[12] = -3.5f;
  EXPECT_THAT(golden.decoded(), ElementsAreArray(sent));
  ASSERT_TRUE(golden.session().set_parameter("lr", 0.5));
  golden.encode(1);
  sent.assign(kV.size(), 0);
  sent[4] = 9;
  sent[7] = 7.5f;
  EXPECT_THAT(golden.decoded(), ElementsAreArray(sent));
  EXPECT_EQ(golden.session().set_parameter("lr", 0).error().kind, rt::ErrorKind::OutOfRange);
}

}  // namespace
}  // namespace cinch::testing
