// Golden vectors of casts, block formats, dithering, and selection by block or by a fitted
// threshold. As in golden_test.cpp, scripts outside this project computed the expected values from
// the papers' formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 3e-7f * std::abs(expected[i])) << i;
  }
}

TEST(GoldenVectors, None) {
  Golden golden("none", library_text("quantize/none.cinch"));
  const float largest = std::numeric_limits<float>::max();
  std::vector<float> gradient = kV;
  gradient[2] = largest;
  gradient[3] = -largest;
  gradient[4] = std::numeric_limits<float>::denorm_min();
  golden.encode(0, gradient);
  EXPECT_EQ(golden.floats(0), gradient);
  EXPECT_EQ(golden.decoded(), gradient);
  EXPECT_EQ(golden.payload().size(), 128u);
}

// A script searched all numbers of each format in f64 for the nearest one.
TEST(GoldenVectors, Fp8) {
  Golden e4m3("fp8", library_text("quantize/fp8.cinch"));
  e4m3.encode();
  EXPECT_THAT(e4m3.floats(0), ElementsAre(112.0f));
  EXPECT_THAT(e4m3.bytes(1), ElementsAreArray({0x6e, 0xf6, 0x66, 0xde, 0x7a, 0x00, 0xd6, 0x79, 0xf2,
                                               0x6a, 0xce, 0x7e, 0xfc, 0x62, 0xec, 0x5a}));
  expect_near(e4m3.decoded(), {1, -2, 0.5f, -0.25f, 2.857142925f, 0, -0.125f, 2.571428537f,
                               -1.428571463f, 0.714285731f, -0.0625f, 4, -3.428571463f,
                               0.357142866f, -0.857142866f, 0.178571433f});
  Golden e5m2("fp8", library_text("quantize/fp8.cinch"), {{"mantissa", 2}});
  e5m2.encode();
  EXPECT_THAT(e5m2.floats(0), ElementsAre(14336.0f));
  EXPECT_THAT(e5m2.bytes(1), ElementsAreArray({0x73, 0xf7, 0x6f, 0xeb, 0x79, 0x00, 0xe7, 0x78, 0xf5,
                                               0x71, 0xe3, 0x7b, 0xfa, 0x6d, 0xf2, 0x69}));
  expect_near(e5m2.decoded(), {1, -2, 0.5f, -0.25f, 2.857142925f, 0, -0.125f, 2.285714388f,
                               -1.428571463f, 0.714285731f, -0.0625f, 4, -3.428571463f,
                               0.357142866f, -0.857142866f, 0.178571433f});
}

// With the scale 4, -2 becomes -2 * 127 / 4 = -63.5. This is a tie and rounds to -64, which is
// even.
TEST(GoldenVectors, Int8Block) {
  Golden whole("int8_block", library_text("quantize/int8_block.cinch"));
  whole.encode();
  EXPECT_THAT(whole.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(whole.integers(1),
              ElementsAre(32, -64, 16, -8, 95, 0, -4, 79, -48, 24, -2, 127, -111, 12, -28, 6));
  Golden halves("int8_block", library_text("quantize/int8_block.cinch"), {{"block", 8}});
  halves.encode();
  EXPECT_THAT(halves.floats(0), ElementsAre(3.0f, 4.0f));
  EXPECT_THAT(halves.integers(1),
              ElementsAre(42, -85, 21, -11, 127, 0, -5, 106, -48, 24, -2, 127, -111, 12, -28, 6));
  expect_near(halves.decoded(),
              {0.992125988f, -2.007874011f, 0.496062994f, -0.259842515f, 3, 0, -0.118110240f,
               2.503937006f, -1.511811018f, 0.755905509f, -0.062992126f, 4, -3.496062994f,
               0.377952754f, -0.881889760f, 0.188976377f});
}

TEST(GoldenVectors, Int4Block) {
  Golden whole("int4_block", library_text("quantize/int4_block.cinch"));
  whole.encode();
  EXPECT_THAT(whole.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(whole.integers(1), ElementsAre(2, -4, 1, 0, 5, 0, 0, 4, -3, 1, 0, 7, -6, 1, -2, 0));
  Golden halves("int4_block", library_text("quantize/int4_block.cinch"), {{"block", 8}});
  halves.encode();
  EXPECT_THAT(halves.floats(0), ElementsAre(3.0f, 4.0f));
  EXPECT_THAT(halves.integers(1), ElementsAre(2, -5, 1, -1, 7, 0, 0, 6, -3, 1, 0, 7, -6, 1, -2, 0));
  expect_near(halves.decoded(),
              {0.857142866f, -2.142857075f, 0.428571433f, -0.428571433f, 3, 0, 0, 2.571428537f,
               -1.714285731f, 0.571428597f, 0, 4, -3.428571463f, 0.571428597f, -1.142857194f, 0});
}

// A script searched E2M1's eight magnitudes in f64 for the nearest one. The second gradient has
// ties and magnitudes above 6 times the scale. The test encodes it unchanged and multiplied by
// 2^-60.
TEST(GoldenVectors, MxFp4) {
  Golden golden("mxfp4", library_text("quantize/mxfp4.cinch"));
  golden.encode();
  EXPECT_THAT(golden.bytes(0), ElementsAre(0x7f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0xc2, 0x81, 0x05, 0x48, 0x2b, 0x68, 0x1e, 0x0a));
  EXPECT_THAT(golden.decoded(),
              ElementsAre(1, -2, 0.5f, 0, 3, 0, 0, 2, -1.5f, 1, 0, 4, -4, 0.5f, -1, 0));
  for (const int exponent : {0, -60}) {
    std::vector<float> gradient = {7.5f,  -6.5f,  5,     -5.01f, 3.5f,  -2.5f, 1.75f, 1.25f,
                                   0.75f, -0.25f, 0.26f, -0.2f,  4.99f, 2.51f, -0.0f, 1};
    std::vector<float> expected = {6, -6, 4, -6, 4, -2, 2, 1, 1, 0, 0.5f, 0, 4, 3, 0, 1};
    for (float& x : gradient) x = std::ldexp(x, exponent);
    for (float& x : expected) x = std::ldexp(x, exponent);
    golden.encode(1, gradient);
    EXPECT_THAT(golden.bytes(0), ElementsAre(127 + exponent));
    EXPECT_THAT(golden.bytes(1), ElementsAre(0xf7, 0xf6, 0xc6, 0x24, 0x82, 0x81, 0x56, 0x28));
    EXPECT_EQ(golden.decoded(1), expected);
  }
}

// A script searched the format's eight magnitudes in f64 for the nearest one. The second gradient
// has ties, which go to the larger magnitude: 3 is a tie between the scales 2 and 4.
TEST(GoldenVectors, E3M0) {
  Golden golden("e3m0", library_text("quantize/e3m0.cinch"));
  golden.encode();
  EXPECT_THAT(golden.bytes(0), ElementsAre(129));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0xe5, 0xb4, 0x07, 0x6a, 0x5e, 0x79, 0x4f, 0x3d));
  EXPECT_THAT(golden.decoded(), ElementsAre(1, -2, 0.5f, -0.25f, 4, 0, -0.125f, 2, -2, 1, -0.0625f,
                                            4, -4, 0.5f, -1, 0.25f));
  for (const int exponent : {0, -60}) {
    for (const bool is_tie : {true, false}) {
      std::vector<float> gradient = {1.5f,     -0.75f,    0.375f,   -0.0234375f,
                                     0.02343f, 0.015625f, -0.0156f, 0.007f,
                                     -0.0f,    0,         2.9f,     is_tie ? -3.0f : -2.99f,
                                     1,        -1,        0.1f,     0.2f};
      for (float& x : gradient) x = std::ldexp(x, exponent);
      golden.encode(1, gradient);
      EXPECT_THAT(golden.bytes(0), ElementsAre((is_tie ? 129 : 128) + exponent));
      EXPECT_THAT(golden.bytes(1),
                  ElementsAreArray(
                      is_tie ? std::vector<int>{0xd6, 0x84, 0x00, 0x08, 0x08, 0xf6, 0xd5, 0x32}
                             : std::vector<int>{0xe7, 0x95, 0x11, 0x08, 0x08, 0xf7, 0xe6, 0x43}));
    }
  }
}

// The gradient repeats kV in four blocks, with the factors 1, 0.3, 2^-13 and 2^-20. (Element 2 is
// 0.53125 because 0.5 would be a tie.) A block's scale is 448 times its factor, rounded to E4M3.
// The second, 134.4, rounds to 128. The last is too small for E4M3 and rounds to 0.
TEST(GoldenVectors, NvFp4) {
  std::vector<float> gradient, expected;
  const float scales[] = {448, 128, 0.0546875f, 0};
  const float factors[] = {1, 0.3f, 0x1p-13f, 0x1p-20f};
  const float values[] = {1.5f, -3, 1, -0.5f, 4, 0, 0, 4, -2, 1, 0, 6, -6, 0.5f, -1.5f, 0.5f};
  for (std::size_t block = 0; block < 4; ++block) {
    for (std::size_t i = 0; i < kV.size(); ++i) {
      gradient.push_back((i == 2 ? 0.53125f : kV[i]) * factors[block]);
      expected.push_back(values[i] * scales[block] * (4.0f / 2688));
    }
  }
  Golden golden("nvfp4", library_text("quantize/nvfp4.cinch"), {}, gradient.size());
  golden.encode(0, gradient);
  expect_near(golden.floats(0), {0.001488095266f});
  EXPECT_THAT(golden.bytes(1), ElementsAre(0x7e, 0x70, 0x16, 0x00));
  const auto code = golden.bytes(2);
  ASSERT_EQ(code.size(), 32u);
  const std::vector<std::uint8_t> codes = {0xd3, 0x92, 0x06, 0x68, 0x2c, 0x78, 0x1f, 0x1b};
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(code[i], codes[i % 8]) << i;
  expect_near(golden.decoded(), expected);
}

// The gradients are kV, -2 kV and kV, and beta is 1/2. So the momenta are 0.5, -0.75 and 0.125
// times kV. Element 5 of kV is zero, whose sign alternates.
TEST(GoldenVectors, Signum) {
  Golden golden("signum", library_text("sign/signum.cinch"), {{"beta", 0.5}});
  const float factors[] = {1, -2, 1}, momenta[] = {0.5f, -0.75f, 0.125f};
  const std::vector<int> bits[] = {{0x6a, 0x55}, {0x95, 0xaa}, {0x6a, 0x55}};
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<float> gradient = kV, momentum = kV;
    for (float& x : gradient) x *= factors[step];
    for (float& x : momentum) x *= momenta[step];
    golden.encode(step, gradient);
    EXPECT_THAT(golden.bytes(0), ElementsAreArray(bits[step]));
    EXPECT_EQ(golden.state(0), momentum);
  }
  EXPECT_EQ(golden.finished({2, -2, 0, -0.0f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
            std::vector<float>({1, -1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(GoldenVectors, NaturalDithering) {
  const std::string text = kHalfRounding + library_text("quantize/natural_dithering.cinch");
  Golden euclidean("natural_dithering", text);
  euclidean.encode();
  EXPECT_NEAR(euclidean.floats(0).at(0), 7.251616199165535, 1e-6);
  EXPECT_THAT(euclidean.integers(1),
              ElementsAre(4, -5, 3, -2, 6, 0, -1, 5, -5, 4, -1, 6, -6, 3, -4, 2));
  Golden largest("natural_dithering", text, {{"max_norm", 1}});
  largest.encode();
  EXPECT_THAT(largest.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(largest.integers(1),
              ElementsAre(5, -6, 4, -3, 6, 0, -2, 6, -5, 4, -1, 7, -7, 3, -5, 2));
  EXPECT_THAT(largest.decoded(), ElementsAre(1, -2, 0.5f, -0.25f, 2, 0, -0.125f, 2, -1, 0.5f,
                                             -0.0625f, 4, -4, 0.25f, -1, 0.125f));
}

// The second program divides by the largest magnitude, 4. So -2 becomes -2 * 7 / 4 = -3.5. Its
// fraction does not exceed 1/2, so kHalfRounding rounds it toward zero, to -3.
TEST(GoldenVectors, LinearDithering) {
  const std::string text = kHalfRounding + library_text("quantize/linear_dithering.cinch");
  Golden euclidean("linear_dithering", text);
  euclidean.encode();
  EXPECT_NEAR(euclidean.floats(0).at(0), 7.251616199165535, 1e-6);
  EXPECT_THAT(euclidean.integers(1),
              ElementsAre(1, -2, 0, 0, 3, 0, 0, 2, -1, 1, 0, 4, -3, 0, -1, 0));
  Golden largest("linear_dithering", text, {{"max_norm", 1}});
  largest.encode();
  EXPECT_THAT(largest.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(largest.integers(1), ElementsAre(2, -3, 1, 0, 5, 0, 0, 4, -3, 1, 0, 7, -6, 1, -2, 0));
}

// The indices are 4, 7, 11 and 12. Their gaps are 5 (the first index plus 1), 3, 4 and 1.
TEST(GoldenVectors, TopKElias) {
  Golden golden("topk_elias", library_text("sparsify/topk_elias.cinch"), {{"ratio", 0.25}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(3.0f, 2.5f, 4.0f, -3.5f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0xea, 0x16, 0x00, 0x00));
  EXPECT_THAT(golden.decoded(), ElementsAre(0, 0, 0, 0, 3, 0, 0, 2.5f, 0, 0, 0, 4, -3.5f, 0, 0, 0));
}

// The gradient has a block of 64 elements and one of 36. The payload's indices count within a
// block, so 7, 18 and 26 are elements 71, 82 and 90.
TEST(GoldenVectors, BlockTopK) {
  std::vector<float> gradient(100), expected(100);
  for (int i = 0; i < 100; ++i) gradient[i] = static_cast<float>(i * 37 % 101 - 50) / 8;
  for (const int i : {0, 30, 60, 71, 82, 90}) expected[i] = gradient[i];
  Golden golden("block_topk", library_text("sparsify/block_topk.cinch"), {{"kept", 3}, {"bits", 6}},
                gradient.size());
  golden.encode(0, gradient);
  EXPECT_THAT(golden.integers(1), ElementsAre(0, 30, 60, 7, 18, 26));
  EXPECT_THAT(golden.floats(0), ElementsAre(-6.25f, 6.25f, 6.125f, -6.125f, -5.75f, 6.0f));
  EXPECT_EQ(golden.decoded(), expected);
}

// Two blocks of 2048 elements, 48 of them beyond the end. Pieces of 16 hold ties at their edges: of
// four equal magnitudes the block's first three are sent.
TEST(GoldenVectors, BlockTopKOfLongBlocks) {
  std::vector<float> gradient(4048), expected(4048);
  for (const int i : {15, 16, 700, 2047, 2048, 2500, 4047}) gradient[i] = i % 2 == 0 ? 2.0f : -2.0f;
  gradient[2049] = 1.0f;
  for (const int i : {15, 16, 700, 2048, 2500, 4047}) expected[i] = gradient[i];
  Golden golden("block_topk", library_text("sparsify/block_topk.cinch"),
                {{"kept", 3}, {"bits", 11}}, gradient.size());
  golden.encode(0, gradient);
  EXPECT_THAT(golden.integers(1), ElementsAre(15, 16, 700, 0, 452, 1999));
  EXPECT_EQ(golden.decoded(), expected);
}

// One block of 64 of which 16 elements are kV. The larger half of what is kept is 4 and 3.5, whose
// mean is 3.75; the smaller half is 3 and 2.5. The second step adds half of what was not sent.
TEST(GoldenVectors, SparseLoCo) {
  Golden golden("sparse_loco", library_text("sparsify/sparse_loco.cinch"),
                {{"kept", 4}, {"bits", 6}, {"decay", 0.5}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(2.75f));
  EXPECT_THAT(golden.floats(1), ElementsAre(3.75f));
  EXPECT_THAT(golden.integers(2), ElementsAre(0, 0, 2, 3));
  EXPECT_THAT(golden.integers(3), ElementsAre(4, 7, 11, 12));
  EXPECT_THAT(golden.decoded(),
              ElementsAre(0, 0, 0, 0, 2.75f, 0, 0, 2.75f, 0, 0, 0, 3.75f, -3.75f, 0, 0, 0));
  EXPECT_THAT(golden.state(0),
              ElementsAre(1, -2, 0.5f, -0.25f, 0.25f, 0, -0.125f, -0.25f, -1.5f, 0.75f, -0.0625f,
                          0.25f, 0.25f, 0.375f, -0.875f, 0.1875f));
  golden.encode(1);
  EXPECT_THAT(golden.integers(3), ElementsAre(1, 4, 11, 12));
  EXPECT_THAT(golden.floats(0), ElementsAre(3.0625f));
  EXPECT_THAT(golden.floats(1), ElementsAre(3.75f));
}

// A block with fewer elements than are kept sends them as one mean, and zeros as zeros.
TEST(GoldenVectors, SparseLoCoOfFewElements) {
  std::vector<float> gradient(64), expected(64);
  gradient[7] = 1;
  gradient[9] = -4;
  gradient[40] = 1;
  expected[7] = expected[40] = 2;
  expected[9] = -2;
  Golden golden("sparse_loco", library_text("sparsify/sparse_loco.cinch"),
                {{"kept", 4}, {"bits", 6}}, gradient.size());
  golden.encode(0, gradient);
  EXPECT_THAT(golden.floats(0), ElementsAre(0.0f));
  EXPECT_THAT(golden.floats(1), ElementsAre(2.0f));
  EXPECT_EQ(golden.decoded(), expected);
}

// The program wants 10 of 1000 elements. It raises its threshold if more than 13 exceed it, and
// lowers it if fewer than 7 do, at most three times. The gradients are quantiles of a Laplace and
// of a Pareto distribution, with alternating signs. A script counted the elements
// above each threshold: 26, 4, 65 and at last 17 of the first gradient, 28 and then 10 of the
// second.
TEST(GoldenVectors, GaussianK) {
  constexpr int kNumElems = 1000;
  Golden golden("gaussiank", library_text("sparsify/gaussiank.cinch"), {}, kNumElems);
  std::uint64_t step = 0;
  for (const bool is_pareto : {false, true}) {
    std::vector<float> gradient(kNumElems);
    for (int i = 0; i < kNumElems; ++i) {
      const double rest = 1 - (i + 0.5) / kNumElems;
      const double a = is_pareto ? 4 * (std::pow(rest, -0.25) - 1) : -std::log(rest);
      gradient[i] = static_cast<float>(i % 2 == 0 ? a : -a);
    }
    golden.encode(step++, gradient);
    const int kept = is_pareto ? 10 : 17;
    EXPECT_EQ(golden.floats(0), std::vector<float>(gradient.end() - kept, gradient.end()));
  }
  golden.encode(step, std::vector<float>(kNumElems, -2.0f));
  EXPECT_EQ(golden.floats(0), std::vector<float>(20, -2.0f)) << "equal ones: the cap";
  EXPECT_EQ(golden.indices(1, 0).back(), 19);
}

TEST(GoldenVectors, StcUnderErrorFeedback) {
  Golden golden("sent",
                "import std.wrap\nimport std.sparsify\n"
                "compressor sent = error_feedback(stc(ratio: 0.25))\n");
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(3.25f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0x08));
  EXPECT_THAT(golden.decoded(),
              ElementsAre(0, 0, 0, 0, 3.25f, 0, 0, 3.25f, 0, 0, 0, 3.25f, -3.25f, 0, 0, 0));
  golden.encode(1);
  EXPECT_THAT(golden.floats(0), ElementsAre(3.875f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0x0b));
  EXPECT_THAT(golden.state(0), ElementsAre(2, -0.125f, 1, -0.5f, 2.75f, 0, -0.25f, 1.75f, 0.875f,
                                           1.5f, -0.125f, 0.875f, 0.125f, 0.75f, -1.75f, 0.375f));
}

TEST(GoldenVectors, TbqSparse) {
  Golden golden("tbq_sparse", library_text("quantize/tbq_sparse.cinch"), {{"tau", 1}});
  golden.encode();
  const std::vector<float> decoded = {1, -1, 0, 0, 1, 0, 0, 1, -1, 0, 0, 1, -1, 0, 0, 0};
  EXPECT_THAT(golden.bytes(0), ElementsAre(0x52));
  EXPECT_EQ(golden.decoded(), decoded);
  EXPECT_THAT(golden.state(0), ElementsAre(0, -1, 0.5f, -0.25f, 2, 0, -0.125f, 1.5f, -0.5f, 0.75f,
                                           -0.0625f, 3, -2.5f, 0.375f, -0.875f, 0.1875f));
}

TEST(GoldenVectors, TwoBit) {
  Golden golden("two_bit", library_text("quantize/two_bit.cinch"), {{"tau", 1}});
  for (std::uint64_t step = 0; step < 2; ++step) {
    golden.encode(step);
    EXPECT_THAT(golden.bytes(0), ElementsAre(0x52, 0x96, 0x94, 0x54));
    EXPECT_THAT(golden.decoded(step),
                ElementsAre(1, -1, 0, 0, 1, 0, 0, 1, -1, 0, 0, 1, -1, 0, 0, 0));
  }
}

// The test replaces `random_bits` so that the rotation's key is 12345. The script drew the signs
// with the finalizer of MurmurHash3 and multiplied by a 16 by 16 Hadamard matrix.
TEST(GoldenVectors, Drive) {
  const std::string text = "fn random_bits(m: u32) -> [u32; 1] { fill(12345 as u32, 1) }\n" +
                           library_text("quantize/drive.cinch");
  Golden golden("drive", text, {{"block", 16}});
  golden.encode();
  EXPECT_THAT(golden.floats(1), ElementsAre(1.4453125f));
  EXPECT_THAT(golden.bytes(2), ElementsAre(0x70, 0x19));
  EXPECT_THAT(golden.decoded(),
              ElementsAre(1.4453125f, -1.4453125f, -1.4453125f, -1.4453125f, 1.4453125f, 1.4453125f,
                          1.4453125f, 1.4453125f, 0, 0, 0, 2.890625f, -2.890625f, 0, 0, 0));
  Golden unbiased("drive", text, {{"block", 16}, {"unbiased", 1}});
  unbiased.encode();
  EXPECT_NEAR(unbiased.floats(1).at(0), 2.2739864864864865, 1e-6);
  EXPECT_THAT(unbiased.bytes(2), ElementsAre(0x70, 0x19));
}

// A payload has 64 bytes of header, 16 bytes for each field of scales, padding included, and
// the codes of the ten elements. It has no codes for the elements that fill up the block.
TEST(SmallTensors, NoPaddingOfFormatsInBlocksIsSent) {
  const std::vector<float> ten(kV.begin(), kV.begin() + 10);
  const std::pair<const char*, std::size_t> sizes[] = {
      {"int8_block", 90}, {"int4_block", 85}, {"mxfp4", 85}, {"nvfp4", 101}, {"e3m0", 85}};
  for (const auto& [name, bytes] : sizes) {
    Golden golden(name, library_text(std::string("quantize/") + name + ".cinch"), {}, ten.size());
    golden.encode(0, ten);
    EXPECT_EQ(golden.payload().size(), bytes) << name;
  }
}

}  // namespace
}  // namespace cinch::testing
