// Bounds over steps: no step's value is outside, and they are close for the sizes that programs
// write.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/core/sizes/host_range.h"

namespace cinch {
namespace {

class StepBoundsTest : public testing::Test {
 protected:
  HostExprId i(std::int64_t value) { return pool.const_int(value); }
  HostExprId real(double value) { return pool.const_f64(value); }
  HostExprId as_real(HostExprId id) { return pool.cast(id, HostType::F64); }
  HostExprId whole(HostExprId id) { return pool.cast(pool.make(HostOp::Ceil, id), HostType::Int); }
  // clamp(ceil(share * n), 1, n)
  HostExprId share_of_n(HostExprId share) {
    return pool.clamp(whole(pool.mul(share, as_real(pool.n()))), i(1), pool.n());
  }
  StepBounds bounds(HostExprId id, std::int64_t n = 1000) {
    HostEnv env;
    env.n = n;
    return bounds_over_steps(pool, id, env).value();
  }

  HostExprPool pool;
};

TEST_F(StepBoundsTest, what_does_not_follow_the_step_has_one_value) {
  const StepBounds found = bounds(pool.mul(i(3), pool.n()));
  EXPECT_EQ(found.least, 3000);
  EXPECT_EQ(found.most, 3000);
}

TEST_F(StepBoundsTest, a_warm_up_that_ends_grows_to_its_last_size) {
  const HostExprId is_early = pool.make(HostOp::Lt, pool.step(), i(5));
  const StepBounds found = bounds(pool.select(is_early, i(10), share_of_n(real(0.4))));
  EXPECT_EQ(found.least, 10);
  EXPECT_EQ(found.most, 400);
}

TEST_F(StepBoundsTest, a_size_that_rises_and_falls_is_found_between) {
  // step * (100 - step), at most 2500, and 0 from step 100 on.
  const HostExprId step = pool.min(pool.step(), i(100));
  const StepBounds found = bounds(pool.mul(step, pool.sub(i(100), step)));
  EXPECT_EQ(found.least, 0);
  EXPECT_GE(found.most, 2500);
  EXPECT_LE(found.most, 2500 + 2500 / 16);
}

// Every fourth step has all elements, the others none, whose logarithm is minus infinity.
TEST_F(StepBoundsTest, integers_of_what_may_be_infinite_keep_the_end_that_is_known) {
  const HostExprId is_fourth =
      pool.make(HostOp::Eq, pool.make(HostOp::Mod, pool.step(), i(4)), i(3));
  const HostExprId size = as_real(pool.select(is_fourth, pool.n(), i(0)));
  const HostExprId width =
      pool.cast(pool.make(HostOp::Floor, pool.make(HostOp::Log2, size)), HostType::Int);
  const StepBounds found = bounds(pool.max(width, i(0)));
  EXPECT_EQ(found.least, 0);
  EXPECT_EQ(found.most, 9);
}

TEST_F(StepBoundsTest, a_decay_is_largest_at_the_start) {
  const HostExprId power = pool.make(HostOp::Pow, real(0.25), as_real(pool.div(pool.step(), i(7))));
  const StepBounds found = bounds(share_of_n(pool.max(power, real(0.001))));
  EXPECT_EQ(found.most, 1000);
  EXPECT_EQ(found.least, 1);
}

TEST_F(StepBoundsTest, steps_at_which_evaluation_fails_count_for_nothing) {
  const HostExprId size =
      pool.min(pool.n(), pool.mul(pool.step(), pool.mul(pool.step(), pool.n())));
  const StepBounds found = bounds(size);
  EXPECT_EQ(found.least, 0);
  EXPECT_EQ(found.most, 1000);
}

TEST_F(StepBoundsTest, steps_before_the_first_count_for_nothing) {
  HostEnv env;
  env.n = 1000;
  const HostExprId falling = pool.max(pool.sub(pool.n(), pool.step()), i(10));
  const auto found = bounds_over_steps(pool, falling, env, 600);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->most, 400);
  EXPECT_EQ(found->least, 10);
}

TEST_F(StepBoundsTest, a_count_is_the_environment_s_though_its_bound_follows_the_step) {
  HostEnv env;
  env.n = 1000;
  const std::int64_t counts[] = {77};
  env.counts = counts;
  const HostExprId bound = pool.min(pool.step(), pool.n());
  const auto found = bounds_over_steps(pool, pool.add(pool.count(0, bound), pool.step()), env, 5);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->least, 82);
}

TEST_F(StepBoundsTest, what_grows_for_ever_has_the_last_step_s_value) {
  EXPECT_EQ(bounds(pool.add(pool.step(), i(1))).most, kMostStep + 1);
}

TEST_F(StepBoundsTest, an_error_of_the_first_step_is_told) {
  HostEnv env;
  env.n = INT64_MAX;
  const auto found = bounds_over_steps(pool, pool.add(pool.mul(i(2), pool.n()), pool.step()), env);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, rt::ErrorKind::Overflow);
}

// Random expressions: the values of steps lie within the bounds.
TEST_F(StepBoundsTest, no_step_is_outside) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  constexpr HostOp kWhole[] = {HostOp::Add,    HostOp::Sub,    HostOp::Mul,    HostOp::Div,
                               HostOp::Mod,    HostOp::Min,    HostOp::Max,    HostOp::CeilDiv,
                               HostOp::BitAnd, HostOp::BitOr,  HostOp::BitXor, HostOp::Shr,
                               HostOp::Shl,    HostOp::AlignUp};
  constexpr HostOp kReal[] = {HostOp::Add, HostOp::Sub, HostOp::Mul, HostOp::Div,
                              HostOp::Min, HostOp::Max, HostOp::Pow};
  constexpr HostOp kOfOne[] = {HostOp::Exp,   HostOp::Log,   HostOp::Sqrt, HostOp::Sin,
                               HostOp::Floor, HostOp::Round, HostOp::Abs,  HostOp::Neg};
  constexpr HostOp kCompare[] = {HostOp::Eq, HostOp::Ne, HostOp::Lt,
                                 HostOp::Le, HostOp::Gt, HostOp::Ge};
  for (int round = 0; round < 400; ++round) {
    std::vector<HostExprId> ints = {pool.step(), pool.n(), i(below(40) - 9), i(below(3))};
    std::vector<HostExprId> reals = {as_real(pool.step()), real(0.5), real(-3)};
    const auto any = [&](const std::vector<HostExprId>& from) {
      return from[random() % from.size()];
    };
    for (int made = 0; made < 6; ++made) {
      ints.push_back(pool.make(kWhole[random() % std::size(kWhole)], any(ints), any(ints)));
      reals.push_back(pool.make(kReal[random() % std::size(kReal)], any(reals), any(reals)));
      reals.push_back(pool.make(kOfOne[random() % std::size(kOfOne)], any(reals)));
      reals.push_back(as_real(any(ints)));
      ints.push_back(whole(any(reals)));
      const HostExprId test =
          made % 2 == 0
              ? pool.make(kCompare[random() % std::size(kCompare)], any(ints), any(ints))
              : pool.make(kCompare[random() % std::size(kCompare)], any(reals), any(reals));
      ints.push_back(pool.select(test, any(ints), any(ints)));
    }
    HostEnv env;
    env.n = 1 + below(5000);
    const HostExprId size = ints.back();
    const auto found = bounds_over_steps(pool, size, env);
    if (!found) continue;
    for (int tried = 0; tried < 60; ++tried) {
      env.step = tried < 30 ? tried : below(std::uint64_t{1} << (2 * (tried - 28) % 56 + 1));
      const auto value = pool.eval_int(size, env);
      if (!value) continue;
      EXPECT_LE(found->least, *value) << pool.print(size) << " at step " << env.step;
      EXPECT_GE(found->most, *value) << pool.print(size) << " at step " << env.step;
    }
  }
}

}  // namespace
}  // namespace cinch
