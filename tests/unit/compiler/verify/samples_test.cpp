// The statistics behind the laws about means: how much is attributed to chance.
#include "compiler/verify/laws.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cinch::verify {
namespace {

TEST(Moments, MeanAndVarianceOfAFewNumbers) {
  Moments moments;
  for (double x : {1.0, 2.0, 3.0, 6.0}) moments.add(x);
  EXPECT_DOUBLE_EQ(moments.mean(), 3.0);
  EXPECT_DOUBLE_EQ(moments.variance(), 14.0 / 3.0);
}

// A coin of -1 and 1 in turn has a mean of 0, and none of 0.1.
TEST(StandardErrors, CountDistancesFromTheMean) {
  Moments coin;
  for (int i = 0; i < 10000; ++i) coin.add(i % 2 == 0 ? 1 : -1);
  EXPECT_NEAR(standard_errors(coin, 0, 1), 0, 1e-9);
  EXPECT_GT(std::abs(standard_errors(coin, 0.1, 1)), kStandardErrors);
}

// 0 in every one of 100 samples is what an event of one in a thousand looks like.
TEST(StandardErrors, GrantWhatIsSeldom) {
  Moments zeros;
  for (int i = 0; i < 100; ++i) zeros.add(0);
  EXPECT_LT(std::abs(standard_errors(zeros, 0.001, 1)), kStandardErrors);
  for (int i = 0; i < 100000; ++i) zeros.add(0);
  EXPECT_GT(std::abs(standard_errors(zeros, 0.001, 1)), kStandardErrors);
}

}  // namespace
}  // namespace cinch::verify
