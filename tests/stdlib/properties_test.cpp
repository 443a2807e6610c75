// Tests properties of whole classes of compressors that claims do not state: indices above 2^24,
// permuted gradients, and thresholds that follow the density.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/sessions.h"

namespace cinch::testing {
namespace {

std::vector<float> decoded(rt::Session& session, const std::vector<float>& gradient) {
  const auto payload = session.encode(gradient, 0);
  EXPECT_TRUE(payload) << (payload ? "" : payload.error().message);
  std::vector<float> out(gradient.size());
  if (!payload) return out;
  const std::vector<std::uint8_t> bytes(payload->begin(), payload->end());
  const rt::Status status = session.decode(bytes, out, 0);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return out;
}

// Returns "topk" for sparsify/topk.cinch.
std::string name_of(const ::testing::TestParamInfo<const char*>& each) {
  const std::string path = each.param;
  const auto begin = path.find('/') + 1;
  return path.substr(begin, path.find('.') - begin);
}

class Sparsifier : public ::testing::TestWithParam<const char*> {};

// 2^24 + 1 is the first integer that f32 cannot represent. An index that was converted to f32 would
// point to the wrong element.
TEST_P(Sparsifier, FindsPlacesBeyondFloats) {
  constexpr std::size_t kElems = (std::size_t{1} << 24) + 3;
  const auto session = open(load(library_program(GetParam())), kElems);
  ASSERT_NE(session, nullptr);
  std::vector<float> gradient(kElems, 0.0f);
  for (const std::size_t place : {kElems - 1, kElems - 2, kElems - 4, std::size_t{5}}) {
    gradient[place] = 1.0f + static_cast<float>(place % 7);
  }
  EXPECT_EQ(decoded(*session, gradient), gradient);
}

INSTANTIATE_TEST_SUITE_P(Library, Sparsifier,
                         ::testing::Values("sparsify/topk.cinch", "sparsify/threshold.cinch",
                                           "sparsify/dgc.cinch", "sparsify/redsync.cinch"),
                         name_of);

class ElementWise : public ::testing::TestWithParam<const char*> {};

// C(permuted x) = permuted C(x). This holds for compressors without random draws and gradients
// whose values are all different.
TEST_P(ElementWise, DoesNotMindTheOrder) {
  const std::vector<float> gradient = make_gradient(DataKind::Normal, 5003, 3);
  std::vector<std::size_t> order(gradient.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, std::mt19937(5));
  std::vector<float> permuted;
  for (const std::size_t from : order) permuted.push_back(gradient[from]);

  const Loaded program = load(library_program(GetParam()));
  const auto one = open(program, gradient.size()), other = open(program, gradient.size());
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  const std::vector<float> plain = decoded(*one, gradient), moved = decoded(*other, permuted);
  for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(moved[i], plain[order[i]]) << i;
}

INSTANTIATE_TEST_SUITE_P(Library, ElementWise,
                         ::testing::Values("quantize/fp16.cinch", "quantize/bf16.cinch",
                                           "quantize/tbq.cinch", "sparsify/threshold.cinch",
                                           "sparsify/topk.cinch"),
                         name_of);

class Estimator : public ::testing::TestWithParam<const char*> {};

// A larger ratio never keeps fewer elements, and at least one element is always kept.
TEST_P(Estimator, KeepsMoreAtLargerDensities) {
  constexpr std::size_t kElems = 50000;
  const Loaded program = load(library_program(GetParam()));
  for (const DataKind kind : {DataKind::Normal, DataKind::HeavyTailed, DataKind::Constant}) {
    const std::vector<float> gradient = make_gradient(kind, kElems, 11);
    std::ptrdiff_t before = 0;
    for (const double ratio : {0.0005, 0.002, 0.01, 0.05}) {
      const auto session = open(program, kElems);
      ASSERT_NE(session, nullptr);
      ASSERT_TRUE(session->set_parameter("ratio", ratio));
      const std::vector<float> out = decoded(*session, gradient);
      const auto kept = static_cast<std::ptrdiff_t>(kElems) - std::ranges::count(out, 0.0f);
      EXPECT_GE(kept, std::max<std::ptrdiff_t>(before, 1))
          << data_kind_name(kind) << ", ratio " << ratio;
      before = kept;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, Estimator,
                         ::testing::Values("sparsify/topk.cinch", "sparsify/redsync.cinch",
                                           "sparsify/sidco.cinch", "sparsify/dgc.cinch"),
                         name_of);

// The gradient's tail is far heavier than that of the fitted distributions. With each stage after
// the second fewer elements remain: seven stages keep only 0.19 of the wanted 200. The program must
// stop adding stages and correct the share that it asks for.
TEST(Sidco, StepsBackWhereAStageMakesItWorse) {
  constexpr std::size_t kElems = 20000;
  std::vector<float> gradient(kElems);
  for (std::size_t i = 0; i < kElems; ++i) {
    const double rest = 1 - (static_cast<double>(i) + 0.5) / kElems;
    gradient[i] = static_cast<float>(std::pow(-std::log(rest), 4));
  }
  const auto session = open(load(library_program("sparsify/sidco.cinch")), kElems);
  ASSERT_NE(session, nullptr);
  std::ptrdiff_t kept = 0;
  for (int step = 0; step < 40; ++step) {
    const std::vector<float> out = decoded(*session, gradient);
    kept = static_cast<std::ptrdiff_t>(kElems) - std::ranges::count(out, 0.0f);
  }
  EXPECT_GE(kept, 160);
  EXPECT_LE(kept, 250);
}

// About 100 elements of the sample reach the threshold, at any ratio. So the number of elements
// sent has a standard deviation of about ten percent. All ten seeds must stay within three
// deviations.
TEST(GradDrop, KeepsTheWantedNumberAtSmallShares) {
  constexpr std::size_t kElems = 1000000;
  const Loaded program = load(library_program("sparsify/graddrop.cinch"));
  const std::vector<float> gradient = make_gradient(DataKind::Normal, kElems, 3);
  rt::SessionOptions options;
  options.rows = kElems;
  for (options.seed = 0; options.seed < 10; ++options.seed) {
    const auto session = open(program, options);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->set_parameter("ratio", 0.001));
    const std::vector<float> out = decoded(*session, gradient);
    const auto kept = static_cast<std::ptrdiff_t>(kElems) - std::ranges::count(out, 0.0f);
    EXPECT_NEAR(static_cast<double>(kept), 1000, 300) << options.seed;
  }
}

}  // namespace
}  // namespace cinch::testing
