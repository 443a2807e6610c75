// Tests all parts of deep gradient compression: momentum, masking, clipping, warm-up, the threshold
// from a sample, and values in half precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/programs/harness/gradients.h"
#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

using ::testing::ElementsAre;
Golden dgc(Bindings bindings, std::size_t num_elems = kV.size()) {
  return {"dgc", library_text("sparsify/dgc.cinch"), std::move(bindings), num_elems};
}
Golden dgc_sampled(Bindings bindings, std::size_t num_elems = kV.size()) {
  return {"dgc_sampled", library_text("sparsify/dgc_sampled.cinch"), std::move(bindings),
          num_elems};
}

// The programs send all elements and do not mask, so nothing stays pending. They must then equal
// momentum SGD bit for bit.
void expect_momentum_sgd(Golden program, bool nesterov) {
  constexpr std::size_t kSize = 1000;
  std::vector<float> velocity(kSize, 0.0f), update(kSize);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto g = make_gradient(DataKind::Normal, kSize, step);
    for (std::size_t i = 0; i < kSize; ++i) {
      const float before = nesterov ? velocity[i] + g[i] : velocity[i];
      velocity[i] = 0.9f * before;
      if (!nesterov) velocity[i] += g[i];
      update[i] = nesterov ? velocity[i] + g[i] : velocity[i];
    }
    program.encode(step, g);
    ASSERT_EQ(program.decoded(step), update) << step;
  }
}

TEST(Dgc, AllElementsWithoutMaskingAreMomentumSgd) {
  const Bindings all = {{"ratio", 1}, {"masking", 0}};
  const Bindings ahead = {{"ratio", 1}, {"masking", 0}, {"nesterov", 1}};
  expect_momentum_sgd(dgc(all, 1000), false);
  expect_momentum_sgd(dgc(ahead, 1000), true);
  expect_momentum_sgd(dgc_sampled({{"ratio", 1}, {"masking", 0}, {"sample", 1}}, 1000), false);
}

// Masking clears the velocity of each element that is sent. Here all are sent, so this is plain
// SGD.
TEST(Dgc, AllElementsWithMaskingArePlainSgd) {
  Golden program = dgc({{"ratio", 1}}, 1000);
  for (std::uint64_t step = 0; step < 5; ++step) {
    const auto g = make_gradient(DataKind::Normal, 1000, step);
    program.encode(step, g);
    EXPECT_EQ(program.decoded(step), g);
  }
}

// The sample holds all 16 elements, so its threshold is exact. The expected values are those of
// GoldenVectors.Dgc.
TEST(Dgc, SampleOfAllIsExact) {
  Golden golden = dgc_sampled({{"ratio", 0.125}});
  const std::vector<int> indices[] = {{11, 12}, {4, 7}, {1, 11}};
  const std::vector<float> values[] = {{4, -3.5f}, {8.7f, 7.25f}, {-11.22f, 11.6f}};
  for (std::uint64_t step = 0; step < 3; ++step) {
    golden.encode(step);
    EXPECT_EQ(golden.indices(1, 0), indices[step]);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(golden.floats(0).at(i), values[step][i], 2e-6);
  }
}

void expect_clipped(Golden golden) {
  golden.encode();
  EXPECT_THAT(golden.indices(1, 0), ElementsAre(11));
  EXPECT_NEAR(golden.floats(0).at(0), 0.5 * 4 / 7.251616199165535, 1e-7);
  EXPECT_NEAR(golden.state(0).at(12), -0.5 * 3.5 / 7.251616199165535, 1e-7);
}

TEST(Dgc, ClipsBeforeAccumulating) {
  const Bindings options = {{"ratio", 0.0625}, {"clip", 0.5}};
  expect_clipped(dgc(options));
  expect_clipped(dgc_sampled(options));
}

TEST(Dgc, WarmUpLowersTheRatioByEpochs) {
  constexpr std::size_t kSize = 10000;
  const Bindings options = {{"ratio", 0.001}, {"warmup", 4}, {"epoch", 2}};
  Golden exact = dgc(options, kSize), sampled = dgc_sampled(options, kSize);
  const std::size_t wanted[] = {2512, 631, 159, 40, 10, 10};
  for (std::uint64_t step = 0; step < 12; ++step) {
    const auto g = make_gradient(DataKind::Normal, kSize, step);
    exact.encode(step, g);
    EXPECT_EQ(exact.floats(0).size(), wanted[step / 2]) << step;
    sampled.encode(step, g);
    const std::size_t goal = wanted[step / 2];
    EXPECT_GE(10 * sampled.floats(0).size(), 8 * goal) << step;
    EXPECT_LE(10 * sampled.floats(0).size(), 13 * goal) << step;
  }
}

// Checks that the sent and the pending values add up to the gradient, that about k elements are
// sent, and that each sent magnitude exceeds all pending ones. With `has_ties` they may be equal,
// because the cap on their number may cut among equal ones.
void expect_largest_sent(const std::vector<float>& gradient, std::size_t k, bool has_ties = false) {
  Golden program = dgc_sampled({{"ratio", 0.001}, {"momentum", 0}}, gradient.size());
  program.encode(3, gradient);
  const auto index = program.indices(1, 0);
  const auto value = program.floats(0), pending = program.state(1);
  std::vector<float> all = pending;
  float least = INFINITY, waiting = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    EXPECT_EQ(pending.at(index[i]), 0);
    all.at(index[i]) = value[i];
    least = std::min(least, std::abs(value[i]));
  }
  for (float x : pending) waiting = std::max(waiting, std::abs(x));
  EXPECT_EQ(all, gradient);
  if (has_ties) {
    EXPECT_GE(least, waiting);
  } else {
    EXPECT_GT(least, waiting);
  }
  EXPECT_GE(index.size(), std::size_t(0.8 * k));
  EXPECT_LE(index.size(), std::size_t(1.3 * k));
}

TEST(Dgc, SampledThresholdKeepsAboutTheWantedNumber) {
  constexpr std::size_t kSize = 200000;
  expect_largest_sent(make_gradient(DataKind::Normal, kSize, 1), 201);
  expect_largest_sent(make_gradient(DataKind::HeavyTailed, kSize, 2), 201);
  expect_largest_sent(make_gradient(DataKind::Constant, kSize, 3), 201, true);
}

// The large elements are few and lie close together. So a sample may contain none of them, or too
// many.
TEST(Dgc, MisledSamplesAreCorrected) {
  constexpr std::size_t kSize = 200000;
  auto few = make_gradient(DataKind::Normal, kSize, 4);
  for (std::size_t i = 0; i < 500; ++i) few[7 * i] *= 100;
  expect_largest_sent(few, 201);
  // 400 elements are not zero. The sample is a hundredth of all elements, so it contains about four
  // of them, of which about two are wanted.
  std::vector<float> sparse(kSize, 0.0f);
  for (std::size_t i = 0; i < 400; ++i) sparse[500 * i] = static_cast<float>(1 + i);
  Golden program = dgc_sampled({{"ratio", 0.001}, {"momentum", 0}}, kSize);
  program.encode(0, sparse);
  EXPECT_GE(program.floats(0).size(), 1u);
  EXPECT_LE(program.floats(0).size(), 261u);
}

TEST(Dgc, ZerosAreNotSent) {
  Golden program = dgc_sampled({{"ratio", 0.25}});
  program.encode(0, std::vector<float>(kV.size(), 0.0f));
  EXPECT_TRUE(program.indices(1, 0).empty());
  EXPECT_EQ(program.decoded(), std::vector<float>(kV.size(), 0.0f));
}

Golden dgc_half(Bindings bindings, std::size_t num_elems = kV.size()) {
  return {"dgc_half", library_text("sparsify/dgc_half.cinch"), std::move(bindings), num_elems};
}

// The program sends the f16 nearest to a value and keeps the difference pending.
TEST(DgcHalf, WhatRoundingLosesIsSentLater) {
  Golden program = dgc_half({{"ratio", 1.0 / 16}});
  std::vector<float> gradient(kV.size(), 0.0f), nothing = gradient;
  gradient[5] = 1.0f + 0x1p-11f + 0x1p-13f;
  program.encode(0, gradient);
  EXPECT_EQ(program.decoded()[5], 1.0f + 0x1p-10f);
  EXPECT_EQ(program.state(0)[5], 0x1p-13f - 0x1p-11f);
  program.encode(1, nothing);
  EXPECT_EQ(program.decoded(1)[5], 0x1p-13f - 0x1p-11f);
  EXPECT_EQ(program.state(0), nothing);
}

TEST(DgcHalf, WhatIsBeyondHalfPrecisionIsSentInParts) {
  Golden program = dgc_half({{"ratio", 1.0 / 16}});
  std::vector<float> gradient(kV.size(), 0.0f);
  gradient[3] = -150000.0f;
  for (const float sent : {-65504.0f, -65504.0f, -18992.0f, 0.0f}) {
    program.encode(0, gradient);
    EXPECT_EQ(program.decoded()[3], sent);
    gradient[3] = 0;
  }
}

TEST(DgcHalf, AnElementTakesLessThan28Bits) {
  constexpr std::size_t kSize = 1 << 20;
  Golden program = dgc_half({{"ratio", 0.001}}, kSize);
  program.encode(0, make_gradient(DataKind::Normal, kSize, 0));
  const std::size_t kept = program.bytes(0).size() / 2;
  EXPECT_EQ(kept, 1049u);
  EXPECT_LT(8 * (program.payload().size() - rt::kPayloadHeaderBytes), 28 * kept);
}

}  // namespace
}  // namespace cinch::testing
