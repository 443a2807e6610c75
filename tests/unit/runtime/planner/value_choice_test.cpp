// A value for each tensor: within the budget of errors, and close to the best of all combinations.
#include "runtime/planner/value_choice.h"

#include <gtest/gtest.h>

#include <random>

namespace cinch::rt {
namespace {

struct Sums {
  std::int64_t bytes = 0;
  double error = 0;
};

Sums sums_of(const ValueCurves& curves, const std::vector<std::size_t>& choice) {
  Sums sums;
  for (std::size_t t = 0; t < curves.size(); ++t) {
    sums.bytes += curves[t][choice[t]].bytes;
    sums.error += curves[t][choice[t]].squared_error;
  }
  return sums;
}

// The fewest bytes of all combinations whose errors fit.
std::int64_t fewest_bytes(const ValueCurves& curves, double budget) {
  std::vector<std::size_t> choice(curves.size(), 0);
  std::int64_t fewest = INT64_MAX;
  for (;;) {
    const Sums sums = sums_of(curves, choice);
    if (sums.error <= budget) fewest = std::min(fewest, sums.bytes);
    std::size_t t = 0;
    while (t < choice.size() && ++choice[t] == curves[t].size()) choice[t++] = 0;
    if (t == choice.size()) return fewest;
  }
}

TEST(ValueChoice, IsCloseToTheBestOfAllCombinations) {
  std::mt19937 random(5);
  double worst = 1;
  for (int i = 0; i < 300; ++i) {
    ValueCurves curves(1 + random() % 5);
    for (auto& curve : curves) {
      double error = static_cast<double>(1 + random() % 1000);
      std::int64_t bytes = static_cast<std::int64_t>(10 + random() % 100);
      const std::int64_t step = bytes;
      for (int value = 0; value < 5; ++value) {
        curve.push_back({bytes, error});
        bytes += step;
        error /= static_cast<double>(2 + random() % 3);
      }
    }
    const std::size_t uniform = random() % 5;
    const auto found = choose_values(curves, uniform);
    ASSERT_TRUE(found);
    const Sums chosen = sums_of(curves, *found),
               same = sums_of(curves, std::vector<std::size_t>(curves.size(), uniform));
    EXPECT_LE(chosen.error, same.error);
    EXPECT_LE(chosen.bytes, same.bytes);
    const std::int64_t fewest = fewest_bytes(curves, same.error);
    EXPECT_GE(chosen.bytes, fewest);
    worst = std::max(worst, static_cast<double>(chosen.bytes) / static_cast<double>(fewest));
  }
  EXPECT_LE(worst, 1.2);
}

// The second tensor's errors count a hundred times as much as the first one's.
TEST(ValueChoice, SpendsBytesWhereTheyHelp) {
  const ValueCurves curves = {{{1, 4}, {2, 2}, {4, 1}}, {{1, 400}, {2, 200}, {4, 100}}};
  const auto found = choose_values(curves, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (std::vector<std::size_t>{1, 1}));  // 202 leaves nothing else
  const ValueCurves many = {
      {{1, 4}, {2, 2}, {4, 1}}, {{1, 4}, {2, 2}, {4, 1}}, {{10, 100}, {20, 10}, {21, 4}}};
  EXPECT_EQ(*choose_values(many, 1), (std::vector<std::size_t>{0, 0, 2}));
}

TEST(ValueChoice, OfEachKeepsRelativeErrors) {
  const ValueCurves curves = {{{1, 8}, {2, 4}, {3, 1}}, {{1, 80}, {2, 6}, {3, 1}}};
  const std::vector<double> norms = {10, 90};
  // Together 10 of 100: the first may have 1, the second 9.
  EXPECT_EQ(*choose_values_of_each(curves, norms, 1), (std::vector<std::size_t>{2, 1}));
  const std::vector<double> zero = {0, 90};
  EXPECT_EQ((*choose_values_of_each(curves, zero, 1))[0], 2U);  // the least error that there is
}

TEST(ValueChoice, TakesNoErrorFromNone) {
  const ValueCurves curves = {{{9, 0}, {5, 0}, {1, 3}}, {{4, 0}, {8, 0}, {1, 1}}};
  EXPECT_EQ(*choose_values(curves, 0), (std::vector<std::size_t>{1, 0}));
}

TEST(ValueChoice, RefusesWhatIsNoCurve) {
  EXPECT_FALSE(choose_values({}, 0));
  EXPECT_FALSE(choose_values({{}}, 0));
  EXPECT_FALSE(choose_values({{{1, 1}}}, 1));
  EXPECT_FALSE(choose_values({{{1, 1}}, {{1, 1}, {2, 0}}}, 0));
  EXPECT_FALSE(choose_values({{{1, std::nan("")}}}, 0));
  EXPECT_FALSE(choose_values_of_each({{{1, 1}}}, {}, 0));
}

}  // namespace
}  // namespace cinch::rt
