// Golden vectors: the exact payloads of published compressors for one fixed gradient, kV. Scripts
// outside this project computed the expected values from the papers' formulas. To make random
// rounding predictable, tests replace `stochastic_round` by kHalfRounding, whose random number is
// always 1/2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr const char* kHalfRoundingOfRows = R"(
fn stochastic_round(x: [f32; a, b]) -> [f32; a, b] {
  let low = floor(abs(x))
  sign(x) * (low + select(abs(x) - low > 0.5, 1.0, 0.0))
}
)";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

TEST(GoldenVectors, Reductions) {
  Golden golden("sums", R"(
compressor sums {
  wire { total: f32, l1: f32, l2: f32, high: f32, low: f32, deviation: f32 }
  encode(g: [f32; n]) {
    wire { total: sum(g), l1: norm1(g), l2: norm2(g), high: max(g), low: min(g), deviation: std(g) }
  }
  decode(w) { fill(w.total, n) }
})");
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(golden.floats(1), ElementsAre(20.625f));
  EXPECT_NEAR(golden.floats(2).at(0), 7.251616199165535, 1e-6);
  EXPECT_THAT(golden.floats(3), ElementsAre(4.0f));
  EXPECT_THAT(golden.floats(4), ElementsAre(-3.5f));
  EXPECT_NEAR(golden.floats(5).at(0), 1.795583775196802, 1e-6);
}

TEST(GoldenVectors, OneBit) {
  Golden golden("onebit", library_text("sign/onebit.cinch"));
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(-1.1875f));
  EXPECT_NEAR(golden.floats(1).at(0), 1.3680555555555556, 1e-6);
  EXPECT_THAT(golden.bytes(2), ElementsAre(0x4a, 0x55));
}

TEST(GoldenVectors, EfSign) {
  Golden golden("ef_sign", library_text("sign/ef_sign.cinch"));
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(1.2890625f));
  EXPECT_THAT(golden.bytes(1), ElementsAre(0x4a, 0x55));
}

TEST(GoldenVectors, TopK) {
  Golden golden("topk", library_text("sparsify/topk.cinch"), {{"ratio", 0.25}});
  golden.encode();
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(4, 7, 11, 12));
  EXPECT_THAT(golden.floats(0), ElementsAre(3.0f, 2.5f, 4.0f, -3.5f));
  double lost = 0, all = 0;
  const auto out = golden.decoded();
  for (std::size_t i = 0; i < kV.size(); ++i) {
    lost += (kV[i] - out[i]) * (kV[i] - out[i]);
    all += kV[i] * kV[i];
  }
  EXPECT_DOUBLE_EQ(lost / all, 0.17278264745208738);
}

TEST(GoldenVectors, TernGrad) {
  Golden golden("terngrad", kHalfRounding + library_text("quantize/terngrad.cinch"));
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f))
      << "2.5 deviations are 4.489: nothing is clipped";
  EXPECT_THAT(golden.integers(1), ElementsAre(0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, -1, 0, 0, 0));
}

TEST(GoldenVectors, Qsgd) {
  const std::string text = replaced(library_text("quantize/qsgd.cinch"),
                                    "const levels = (1 << (bits - 1)) - 1", "const levels = 4");
  Golden golden("qsgd", kHalfRoundingOfRows + text, {{"bits", 4}, {"bucket", 16}});
  golden.encode();
  EXPECT_NEAR(golden.floats(0).at(0) / 4, 1.8129040497913838, 1e-6);
  EXPECT_THAT(golden.integers(1), ElementsAre(1, -1, 0, 0, 2, 0, 0, 1, -1, 0, 0, 2, -2, 0, 0, 0));
}

TEST(GoldenVectors, MinMax) {
  Golden golden("minmax", kHalfRounding + library_text("quantize/minmax.cinch"), {{"bits", 2}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(-3.5f));
  EXPECT_THAT(golden.floats(1), ElementsAre(2.5f));
  EXPECT_THAT(golden.integers(2), ElementsAre(2, 1, 2, 1, 3, 1, 1, 2, 1, 2, 1, 3, 0, 2, 1, 1));
  EXPECT_THAT(golden.bytes(2), ElementsAre(0x66, 0x97, 0xd9, 0x58));
}

TEST(GoldenVectors, Tbq) {
  Golden golden("tbq", library_text("quantize/tbq.cinch"), {{"tau", 1}});
  golden.encode();
  EXPECT_THAT(golden.bytes(0), ElementsAre(0x52, 0x96, 0x94, 0x54));
  EXPECT_THAT(golden.state(0),
              ElementsAreArray({0.0f, -1.0f, 0.5f, -0.25f, 2.0f, 0.0f, -0.125f, 1.5f, -0.5f, 0.75f,
                                -0.0625f, 3.0f, -2.5f, 0.375f, -0.875f, 0.1875f}));
}

TEST(GoldenVectors, Natural) {
  Golden golden("natural", kHalfRounding + library_text("quantize/natural.cinch"));
  golden.encode();
  EXPECT_THAT(golden.decoded(),
              ElementsAreArray({1.0f, -2.0f, 0.5f, -0.25f, 2.0f, 0.0f, -0.125f, 2.0f, -1.0f, 0.5f,
                                -0.0625f, 4.0f, -4.0f, 0.25f, -1.0f, 0.125f}));
  EXPECT_THAT(golden.bytes(0), ElementsAreArray({0x6d, 0xee, 0x6c, 0xeb, 0x6e, 0x00, 0xea, 0x6e,
                                                 0xed, 0x6c, 0xe9, 0x6f, 0xef, 0x6b, 0xed, 0x6a}));
}

TEST(GoldenVectors, ErrorFeedbackOfTopTwo) {
  Golden golden("ef",
                "import std.wrap\nimport std.sparsify\n"
                "compressor ef = error_feedback(topk(ratio: 0.125))\n");
  golden.encode(0);
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(11, 12));
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f, -3.5f));
  golden.encode(1);
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(4, 7));
  EXPECT_THAT(golden.floats(0), ElementsAre(6.0f, 5.0f));
  golden.encode(2);
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(11, 12));
  EXPECT_THAT(golden.floats(0), ElementsAre(8.0f, -7.0f));
}

TEST(GoldenVectors, Dgc) {
  Golden golden("dgc", library_text("sparsify/dgc.cinch"), {{"ratio", 0.125}, {"momentum", 0.9}});
  const std::vector<int> indices[] = {{11, 12}, {4, 7}, {1, 11}};
  const std::vector<float> values[] = {{4, -3.5f}, {8.7f, 7.25f}, {-11.22f, 11.6f}};
  for (std::uint64_t step = 0; step < 3; ++step) {
    golden.encode(step);
    EXPECT_EQ(golden.indices(1, 0), indices[step]);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(golden.floats(0).at(i), values[step][i], 2e-6);
  }
}

TEST(GoldenVectors, Fp16) {
  Golden golden("fp16", library_text("quantize/fp16.cinch"));
  golden.encode();
  EXPECT_EQ(golden.decoded(), kV) << "all of them are binary16 values";
}

// A script computed the expected codes as (bits + 0x7fff + (bits >> 16 & 1)) >> 16 in integers. The
// second gradient has ties, subnormals and values around the largest bfloat16. Values that round
// above it become infinities.
TEST(GoldenVectors, Bf16) {
  Golden golden("bf16", library_text("quantize/bf16.cinch"));
  golden.encode();
  EXPECT_EQ(golden.decoded(), kV) << "all of them are bfloat16 values";
  const float largest = 3.4028235e38f, tie = 3.3961776e38f;
  golden.encode(1,
                {1.0f, 1.00390625f, 1.01171875f, -3.14159f, 1e-40f, -0.0f, 0.1f, 65520.0f, 1e-45f,
                 -3.2768e-41f, 3.3895314e38f, largest, -tie, 3.39e38f, 1.37753e-40f, -7e-41f});
  EXPECT_THAT(golden.integers(0),
              ElementsAreArray({0x3f80, 0x3f80, 0x3f82, 0xc049, 0x0001, 0x8000, 0x3dcd, 0x4780,
                                0x0000, 0x8000, 0x7f7f, 0x7f80, 0xff80, 0x7f7f, 0x0002, 0x8001}));
}

std::string momentum_of(const std::string& inner, const std::string& options) {
  return "import std.wrap\nimport std.sparsify\n"
         "compressor sent = momentum(" +
         inner + ", factor: 0.5" + options + ")\n";
}

// Every step has the gradient kV and the factor is 1/2. So the velocities are 1, 1.5 and 1.75 times
// kV. With Nesterov the program sends kV plus half the velocity: 1.5, 1.75 and 1.875 times kV.
TEST(GoldenVectors, MomentumOfTopTwo) {
  Golden plain("sent", momentum_of("topk(ratio: 0.125)", ""));
  Golden ahead("sent", momentum_of("topk(ratio: 0.125)", ", nesterov: true"));
  const float velocities[] = {1, 1.5f, 1.75f}, ahead_by[] = {1.5f, 1.75f, 1.875f};
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (Golden* golden : {&plain, &ahead}) {
      golden->encode(step);
      const float factor = golden == &plain ? velocities[step] : ahead_by[step];
      EXPECT_THAT(golden->indices(1, 0), ElementsAre(11, 12));
      EXPECT_THAT(golden->floats(0), ElementsAre(4 * factor, -3.5f * factor));
      EXPECT_EQ(golden->state(0)[1], -2 * velocities[step]);
    }
  }
}

TEST(GoldenVectors, MomentumOfErrorFeedbackOfTopTwo) {
  Golden golden("sent", momentum_of("error_feedback(topk(ratio: 0.125))", ""));
  const std::vector<int> indices[] = {{11, 12}, {4, 7}, {11, 12}};
  const std::vector<float> values[] = {{4, -3.5f}, {7.5f, 6.25f}, {13, -11.375f}};
  for (std::uint64_t step = 0; step < 3; ++step) {
    golden.encode(step);
    EXPECT_EQ(golden.indices(1, 0), indices[step]);
    EXPECT_EQ(golden.floats(0), values[step]);
  }
}

TEST(GoldenVectors, SignSgd) {
  Golden golden("signsgd", library_text("sign/signsgd.cinch"));
  // Element 5 is zero: its sign alternates.
  for (const std::uint64_t step : {0, 1, 2}) {
    golden.encode(step);
    EXPECT_THAT(golden.bytes(0), ElementsAre(step == 1 ? 0x4a : 0x6a, 0x55));
  }
  std::vector<float> votes(kV.size(), 2.0f), majority(kV.size(), 1.0f);
  votes[1] = majority[1] = -1;
  votes[2] = 0;
  votes[3] = -0.0f;
  EXPECT_EQ(golden.finished(votes), majority);
  Golden ternary("vote", "import std.sign\ncompressor vote = signsgd(tie_is_zero: true)\n");
  majority[2] = majority[3] = 0;
  EXPECT_EQ(ternary.finished(votes), majority);
}

// A script computed the codes in f64: frexp gave the scale, then it rounded to the nearest E4M3
// number. The second gradient has values above 448 times the scale, and ties between normal and
// between subnormal numbers.
TEST(GoldenVectors, MxFp8) {
  Golden golden("mxfp8", library_text("quantize/mxfp8.cinch"));
  golden.encode();
  EXPECT_THAT(golden.bytes(0), ElementsAre(0x79));
  const std::vector<int> codes = {0x68, 0xf0, 0x60, 0xd8, 0x74, 0x00, 0xd0, 0x72,
                                  0xec, 0x64, 0xc8, 0x78, 0xf6, 0x5c, 0xe6, 0x54};
  EXPECT_THAT(golden.bytes(1), ElementsAreArray(codes));
  EXPECT_EQ(golden.decoded(), kV);
  const float tiny = 0x1p-17f;
  golden.encode(1, {1.96875f, -1.9f, 1.1875f, 1.0625f, -1, tiny, 0.5f * tiny, 0.75f * tiny,
                    1.5f * tiny, 2.5f * tiny, -1e-40f, 0, 0, 0, 0, 0});
  EXPECT_THAT(golden.decoded(1),
              ElementsAreArray({1.75f, -1.75f, 1.25f, 1.0f, -1.0f, tiny, 0.0f, tiny, 2 * tiny,
                                2 * tiny, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}));
}

// A script searched the 256 sorted codes in f64 for the nearest one.
TEST(GoldenVectors, Dynamic8) {
  Golden golden("dynamic8", library_text("quantize/dynamic8.cinch"), {{"block", 16}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f));
  EXPECT_THAT(golden.integers(1),
              ElementsAre(201, 35, 192, 77, 237, 127, 88, 228, 44, 197, 93, 255, 8, 188, 55, 172));
  golden.encode(1, {1, -1, 0.99f, 5.5e-7f, -5.5e-7f, 3.25e-6f, 7.75e-6f, 2.125e-5f, -4.375e-5f,
                    6.625e-5f, 0.96484375f, 0.97890625f, 0.99296875f, 2.7e-7f, 2.8e-7f, 0});
  const float expected[] = {1,           -0.99296875f,
                            0.99296875f, 5.5e-7f,
                            -5.5e-7f,    3.25e-6f,
                            7.75e-6f,    2.125e-5f,
                            -4.375e-5f,  6.625e-5f,
                            0.96484375f, 0.97890625f,
                            0.99296875f, 0,
                            5.5e-7f,     0};
  const auto out = golden.decoded(1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(out[i], expected[i], 2e-7f * std::abs(expected[i])) << i;
  }
}

// The program wants two to four elements. Six magnitudes exceed the mean, 1.289, so it bisects.
// Three exceed the middle between the mean and the largest, 4.
TEST(GoldenVectors, RedSync) {
  Golden golden("redsync", library_text("sparsify/redsync.cinch"), {{"ratio", 0.125}});
  golden.encode();
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(4, 11, 12));
  EXPECT_THAT(golden.floats(0), ElementsAre(3.0f, 4.0f, -3.5f));
  golden.encode(1, std::vector<float>(kV.size(), -2.0f));
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(0, 1, 2, 3)) << "equal elements: the cap";
}

TEST(GoldenVectors, AdaComp) {
  Golden golden("adacomp", library_text("sparsify/adacomp.cinch"), {{"bin", 8}});
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(3.5f));
  EXPECT_THAT(golden.integers(1), ElementsAre(1, 4, 7, 11, 12));
  EXPECT_THAT(golden.bytes(2), ElementsAre(0x11));
  EXPECT_THAT(golden.state(0),
              ElementsAreArray({1.0f, 1.5f, 0.5f, -0.25f, -0.5f, 0.0f, -0.125f, -1.0f, -1.5f, 0.75f,
                                -0.0625f, 0.5f, 0.0f, 0.375f, -0.875f, 0.1875f}));
  golden.encode(1);
  EXPECT_THAT(golden.integers(1), ElementsAre(0, 1, 4, 7, 8, 11, 12));
  EXPECT_THAT(golden.bytes(2), ElementsAre(0x52));
}

// The magnitudes are 10000 quantiles of an exponential, a generalised Pareto and a Weibull
// distribution. A reference in f64 computed how many elements remain, for each fit and number of
// stages. The program sends at most twice the wanted number, so the table's counts end there, too.
TEST(GoldenVectors, SidCo) {
  struct Case {
    double (*quantile)(double);
    double ratio;
    std::size_t kept[2][3];
  };
  const Case cases[] = {
      {[](double rest) { return -std::log(rest); }, 0.1, {{1000, 1000, 1000}, {1000, 1000, 999}}},
      {[](double rest) { return 4 * (std::pow(rest, -0.25) - 1); },
       0.01,
       {{200, 119, 71}, {103, 101, 98}}},
      {[](double rest) { return std::log(rest) * std::log(rest); },
       0.001,
       {{20, 20, 11}, {13, 10, 11}}}};
  for (const Case& sample : cases) {
    std::vector<float> gradient(10000);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double a = sample.quantile(1 - (static_cast<double>(i) + 0.5) / 10000);
      gradient[i] = static_cast<float>(i % 2 == 0 ? a : -a);
    }
    for (int fit : {0, 1}) {
      for (int stages : {1, 2, 3}) {
        Golden golden("sidco", library_text("sparsify/sidco.cinch"),
                      {{"ratio", sample.ratio}, {"fit", 2 * fit}, {"stages", stages}},
                      gradient.size());
        golden.encode(0, gradient);
        EXPECT_EQ(golden.floats(0).size(), sample.kept[fit][stages - 1])
            << sample.ratio << " fit " << 2 * fit << " stages " << stages;
      }
    }
  }
}

// Only one element is not zero. So each row of the table has one cell of magnitude 2.5, whatever
// the hash keys are, and the estimate is exact.
TEST(GoldenVectors, CountSketchOfOneElement) {
  Golden golden("count_sketch", library_text("sparsify/count_sketch.cinch"),
                {{"columns", 0.2}, {"ratio", 0.0625}});
  std::vector<float> gradient(kV.size());
  gradient[5] = -2.5f;
  golden.encode(0, gradient);
  const auto table = golden.floats(0);
  ASSERT_EQ(table.size(), 5u * 4u);
  for (std::size_t row = 0; row < 5; ++row) {
    float sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += std::abs(table[4 * row + i]);
    EXPECT_EQ(sum, 2.5f) << row;
  }
  EXPECT_EQ(golden.decoded(), gradient);
}

// The gradient is kV in every step. Each step sends the two largest elements that the estimate
// still lacks. The update is the estimate so far.
TEST(GoldenVectors, Ef21OfTopTwo) {
  Golden golden("sent",
                "import std.wrap\nimport std.sparsify\n"
                "compressor sent = ef21(topk(ratio: 0.125))\n");
  const std::vector<int> indices[] = {{11, 12}, {4, 7}, {1, 8}};
  std::vector<float> estimate(kV.size());
  for (std::uint64_t step = 0; step < 3; ++step) {
    golden.encode(step);
    EXPECT_EQ(golden.indices(1, 0), indices[step]);
    for (const int index : indices[step]) {
      estimate[static_cast<std::size_t>(index)] = kV[static_cast<std::size_t>(index)];
    }
    EXPECT_EQ(golden.state(0), estimate);
    EXPECT_EQ(golden.finished(golden.decoded(step), step), estimate);
  }
}

TEST(GoldenVectors, ClipOfTopOne) {
  const std::string inner =
      "import std.wrap\nimport std.sparsify\ncompressor sent = clip(topk(ratio: 0.0625)";
  Golden clipped("sent", inner + ", norm: 0.5)\n");
  clipped.encode();
  EXPECT_THAT(clipped.indices(1, 0), ElementsAre(11));
  EXPECT_NEAR(clipped.floats(0).at(0), 0.5 * 4 / 7.251616199165535, 1e-7);
  clipped.encode(1, std::vector<float>(kV.size(), 3e38f));
  EXPECT_NEAR(clipped.floats(0).at(0), 0.125, 1e-6) << "squares overflow";
  Golden whole("sent", inner + ", norm: 7.3)\n");
  whole.encode();
  EXPECT_THAT(whole.floats(0), ElementsAre(4.0f));
}

TEST(GoldenVectors, ScaledTopOne) {
  Golden golden("sent",
                "import std.wrap\nimport std.sparsify\n"
                "compressor sent = scaled(topk(ratio: 0.0625), factor: 16)\n");
  golden.encode();
  EXPECT_THAT(golden.floats(0), ElementsAre(4.0f));
  EXPECT_EQ(golden.decoded()[11], 64.0f);
}

// The gradient has 16 elements. With a limit of 17 the program sends all of them exactly. With a
// limit of 16 it sends the two largest and no exact values.
TEST(GoldenVectors, ExactBelowOfTopTwo) {
  const std::string inner =
      "import std.wrap\nimport std.sparsify\ncompressor sent = exact_below(topk(ratio: 0.125)";
  Golden small("sent", inner + ", elements: 17)\n");
  small.encode();
  EXPECT_TRUE(small.indices(1, 0).empty());
  EXPECT_EQ(small.floats(2), kV);
  EXPECT_EQ(small.decoded(), kV);
  Golden large("sent", inner + ", elements: 16)\n");
  large.encode();
  EXPECT_THAT(large.indices(1, 0), ElementsAre(11, 12));
  EXPECT_THAT(large.floats(0), ElementsAre(4.0f, -3.5f));
  EXPECT_TRUE(large.floats(2).empty());
  EXPECT_EQ(large.decoded()[11], 4.0f);
  EXPECT_EQ(large.decoded()[4], 0.0f);
}

// The expected values are the orthonormal DCT-II of (1, 2, 3, 4).
TEST(GoldenVectors, CosineTransformOfFour) {
  Golden golden(
      "dct4",
      "compressor dct4 {\n"
      "  const dct = reshape(map(iota(16), |i| cos(pi / 4 * ((i % 4) as f32 + 0.5) * (i / "
      "4) as f32) * sqrt(select(i < 4, 1.0, 2.0) / 4)), 4, 4)\n"
      "  size rows = ceil_div(n, 4)\n"
      "  wire { all: [f32; rows, 4] }\n"
      "  encode(g: [f32; n]) { wire { all: chunk(g, 4) @ transpose(dct) } }\n"
      "  decode(w) { unchunk(w.all @ dct, n) }\n"
      "}\n",
      {}, 4);
  golden.encode(0, {1, 2, 3, 4});
  EXPECT_THAT(golden.floats(0), Pointwise(FloatNear(1e-6f), {5.0f, -2.230442f, 0.0f, -0.158513f}));
  EXPECT_THAT(golden.decoded(), Pointwise(FloatNear(2e-6f), {1.0f, 2.0f, 3.0f, 4.0f}));
}

// The first chunk of 64 elements is 3 times row 5 of the cosine transform minus 2 times row 0, so
// it has two nonzero coefficients, -2 and 3. The program sends two coefficients of each chunk. So
// it sends the whole gradient, and no momentum remains.
TEST(GoldenVectors, Demo) {
  Golden golden("demo", library_text("sparsify/demo.cinch"), {{"kept", 2}}, 70);
  std::vector<float> gradient(70);
  const double pi = std::acos(-1.0);
  for (int j = 0; j < 64; ++j) {
    gradient[j] = static_cast<float>(3 * std::sqrt(2.0 / 64) * std::cos(pi / 64 * (j + 0.5) * 5) -
                                     2 * std::sqrt(1.0 / 64));
  }
  golden.encode(0, gradient);
  const auto index = golden.integers(0);
  const auto value = golden.floats(1);
  ASSERT_EQ(value.size(), 4u);
  EXPECT_THAT(index, ElementsAre(0, 5, 0, 1));
  EXPECT_NEAR(value[0], -2, 1e-5);
  EXPECT_NEAR(value[1], 3, 1e-5);
  for (float left : golden.state(0)) EXPECT_NEAR(left, 0, 2e-6);
  EXPECT_THAT(golden.decoded(), Pointwise(FloatNear(2e-6f), gradient));
  EXPECT_THAT(golden.finished(std::vector<float>(70, -0.5f)), Each(-1.0f));
}

// Chunk k is row k of the cosine transform, computed in f64. So its largest coefficient is number
// k, and this coefficient is 1.
TEST(GoldenVectors, DemosCosines) {
  std::vector<float> rows;
  for (int k = 0; k < 64; ++k) {
    for (int j = 0; j < 64; ++j) {
      rows.push_back(static_cast<float>(std::cos(std::acos(-1.0) * (2 * j + 1) * k / 128) *
                                        std::sqrt((k == 0 ? 1.0 : 2.0) / 64)));
    }
  }
  Golden golden("demo", library_text("sparsify/demo.cinch"), {{"kept", 1}}, rows.size());
  golden.encode(0, rows);
  const std::vector<int> index = golden.integers(0);
  const std::vector<float> value = golden.floats(1);
  ASSERT_EQ(value.size(), 64u);
  for (int k = 0; k < 64; ++k) {
    EXPECT_EQ(index[k], k);
    EXPECT_NEAR(value[k], 1, 3e-7) << k;
  }
}

// A payload has 64 bytes of header, 16 bytes for the scale, padding included, and the codes of the
// ten elements. It has no codes for the elements that fill up the block.
TEST(SmallTensors, NoPaddingOfBlocksIsSent) {
  const std::vector<float> ten(kV.begin(), kV.begin() + 10);
  const std::pair<const char*, std::size_t> sizes[] = {
      {"dynamic8", 90}, {"qsgd", 85}, {"mxfp8", 90}};
  for (const auto& [name, bytes] : sizes) {
    Golden golden(name, library_text(std::string("quantize/") + name + ".cinch"), {}, ten.size());
    golden.encode(0, ten);
    EXPECT_EQ(golden.payload().size(), bytes) << name;
  }
}

// A gradient with a single 1 has cosines as its coefficients. All 64 coefficients restore it. With
// 8 coefficients, the rest stays in the momentum.
TEST(GoldenVectors, DemoKeepsTheRest) {
  std::vector<float> gradient(128);
  gradient[69] = 1;
  Golden all("demo", library_text("sparsify/demo.cinch"), {{"kept", 64}}, 128);
  all.encode(0, gradient);
  EXPECT_THAT(all.decoded(), Pointwise(FloatNear(1e-6f), gradient));
  Golden some("demo", library_text("sparsify/demo.cinch"), {{"kept", 8}}, 128);
  some.encode(0, gradient);
  const auto sent = some.decoded(), left = some.state(0);
  float squares = 0;
  for (std::size_t i = 0; i < 128; ++i) {
    EXPECT_NEAR(sent[i] + left[i], gradient[i], 1e-6);
    squares += left[i] * left[i];
  }
  // The square of a coefficient is at most 2 / 64. So the 8 that are sent hold at most 1 / 4 of the
  // sum of squares, which is 1.
  EXPECT_GT(squares, 0.75f);
  EXPECT_LT(squares, 0.8f);
}

// The gradient has two chunks of eight elements. Top-k sends the largest element of each chunk.
// ef_sign sends the mean magnitude of each chunk as its scale.
TEST(GoldenVectors, ChunkedTopOneAndScaledSigns) {
  Golden largest("sent",
                 "import std.wrap\nimport std.sparsify\n"
                 "compressor sent = chunked(topk(ratio: 0.125), size: 8)\n");
  largest.encode();
  EXPECT_THAT(largest.integers(1), ElementsAre(4, 3));
  EXPECT_THAT(largest.floats(0), ElementsAre(3.0f, 4.0f));
  EXPECT_THAT(largest.decoded(), ElementsAre(0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0));
  Golden signs("sent",
               "import std.wrap\nimport std.sign\n"
               "compressor sent = chunked(ef_sign, size: 8)\n");
  signs.encode();
  EXPECT_THAT(signs.floats(0), ElementsAre(1.171875f, 1.40625f));
  EXPECT_THAT(signs.bytes(1), ElementsAre(0x4a, 0x55));
}

}  // namespace
}  // namespace cinch::testing
