// Periods of steps against sums made by hand.
#include "runtime/simulator/period.h"

#include <gtest/gtest.h>

namespace cinch::rt {
namespace {

double waited(const Period& period) {
  double all = 0;
  for (const PeriodStep& step : period.steps) all += step.wait_seconds;
  return all;
}

TEST(Period, WaitsForAnExchangeAtItsEnd) {
  const Period period = *period_of({.every = 4}, 2, {5}, {});
  ASSERT_EQ(period.steps.size(), 4U);
  EXPECT_FALSE(period.steps[2].begins);
  EXPECT_EQ(period.steps[3].begins, 0U);
  EXPECT_EQ(period.steps[3].uses, 0U);
  EXPECT_EQ(period.steps[3].wait_seconds, 5);
  EXPECT_EQ(period.seconds, 4 * 2 + 5);
}

TEST(Period, HidesWhatTheDelayLeavesRoomFor) {
  // Two steps of 2 s hide 4 s of 5.
  const Period late = *period_of({.every = 4, .delay = 2}, 2, {5}, {});
  EXPECT_EQ(late.steps[1].uses, 0U);
  EXPECT_EQ(late.steps[1].wait_seconds, 1);
  EXPECT_EQ(late.seconds, 4 * 2 + 1);
  EXPECT_EQ(period_of({.every = 4, .delay = 3}, 2, {5}, {})->seconds, 8);
  EXPECT_EQ(period_of({.delay = 1}, 2, {1.5}, {})->seconds, 2);
  EXPECT_EQ(period_of({.delay = 1}, 2, {3}, {})->seconds, 3);
}

TEST(Period, FragmentsTakeTurns) {
  const Period period = *period_of({.every = 6, .fragments = 3}, 1, {2, 3, 4}, {});
  EXPECT_EQ(period.steps[1].begins, 0U);
  EXPECT_EQ(period.steps[3].begins, 1U);
  EXPECT_EQ(period.steps[5].begins, 2U);
  EXPECT_EQ(period.seconds, 6 + 2 + 3 + 4);
  // Each has 2 s until the next begins, and must end within one step.
  const Period late = *period_of({.every = 6, .fragments = 3, .delay = 1}, 1, {2, 3, 4}, {});
  EXPECT_EQ(waited(late), 1 + 2 + 3);
}

TEST(Period, OneExchangeIsUnderWayAtATime) {
  // Of 10 s of steps, exchanges need 12.
  const Period period = *period_of({.every = 10, .fragments = 2, .delay = 9}, 1, {6, 6}, {});
  EXPECT_NEAR(period.seconds, 12, 1e-9);
}

TEST(Period, CorrectsNowAndThen) {
  const Period period = *period_of({.every = 2, .correct = 3}, 1, {0.5}, {10});
  ASSERT_EQ(period.steps.size(), 6U);
  EXPECT_FALSE(period.steps[3].corrects);
  EXPECT_TRUE(period.steps[5].corrects);
  EXPECT_EQ(period.seconds, 6 + 0.5 + 0.5 + 10);
}

TEST(Period, RefusesWhatIsNone) {
  EXPECT_EQ(check_period({.every = 2, .fragments = 3}).error().message,
            "3 fragments are more than the 2 steps that they take turns in");
  EXPECT_EQ(check_period({.every = 3, .delay = 3}).error().message,
            "a delay of 3 steps is no shorter than 3 steps between exchanges");
  EXPECT_EQ(check_period({.every = 1000, .correct = 1000}).error().message,
            "a period of 1000 exchanges, 1000 steps apart, has more than 100000 steps");
  // The longest one that is taken, each step with a fragment of its own.
  const std::uint32_t most = 100'000;
  EXPECT_EQ(
      period_of({.every = most, .fragments = most}, 1, std::vector<double>(most, 1), {})->seconds,
      2.0 * most);
  EXPECT_EQ(check_period({.every = 0}).error().message, "a period of no steps");
}

}  // namespace
}  // namespace cinch::rt
