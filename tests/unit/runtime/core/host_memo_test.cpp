// A memo gives what evaluation without one gives, whatever changes from call to call.
#include "runtime/core/sizes/host_memo.h"

#include <gtest/gtest.h>

#include <random>

namespace cinch {
namespace {

// Sizes of every kind: of n, of a parameter, of the step, of a count, and one that may overflow.
class HostMemoTest : public testing::Test {
 protected:
  HostMemoTest() {
    const HostExprId n = pool.n(), step = pool.step();
    const HostExprId scaled = pool.mul(pool.param(0, HostType::F32), pool.cast(n, HostType::F32));
    const HostExprId k = pool.cast(pool.make(HostOp::Ceil, scaled), HostType::Int);
    const HostExprId count = pool.count(0, n);
    const HostExprId is_first = pool.make(HostOp::Eq, step, pool.const_int(0));
    exprs = {n,
             k,
             pool.add(step, k),
             pool.ceil_div(count, pool.const_int(32)),
             pool.mul(pool.add(count, step), pool.worker()),
             pool.mul(n, pool.mul(n, n)),
             pool.select(is_first, pool.mul(n, pool.mul(n, n)), pool.add(count, k))};
  }

  HostExprPool pool;
  std::vector<HostExprId> exprs;
};

TEST_F(HostMemoTest, GivesWhatEvaluationGives) {
  std::mt19937 random(3);
  const auto any = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  HostMemo memo;
  int num_errors = 0;
  for (int round = 0; round < 3000; ++round) {
    const HostValue params[] = {HostValue::from_f32(static_cast<float>(any({1, 3})) / 8)};
    HostEnv env;
    env.n = any({0, 5, 1000, std::int64_t{1} << 40});
    env.step = any({0, 1, 2});
    env.worker = any({0, 3});
    env.params = params;
    memo.bind(pool, env);
    for (const std::int64_t held : {any({0, 7}), any({7, 31})}) {
      const std::int64_t counts[] = {held};
      env.counts = counts;
      const HostExprId id = exprs[random() % exprs.size()];
      const auto without = pool.eval(id, env);
      env.memo = &memo;
      const auto with = pool.eval(id, env);
      env.memo = nullptr;
      ASSERT_EQ(with.has_value(), without.has_value());
      if (with) {
        ASSERT_EQ(*with, *without) << pool.print(id) << " in round " << round;
      } else {
        ASSERT_EQ(with.error().message, without.error().message);
        ++num_errors;
      }
    }
  }
  EXPECT_GT(num_errors, 100);
}

TEST_F(HostMemoTest, OfAnotherPoolIsNotAsked) {
  HostExprPool other;
  const HostExprId twice = other.add(other.n(), other.n());
  HostEnv env;
  env.n = 21;
  HostMemo memo;
  memo.bind(pool, env);
  env.memo = &memo;
  EXPECT_EQ(other.eval_int(twice, env).value(), 42);
}

TEST_F(HostMemoTest, TakesNodesMadeLater) {
  HostEnv env;
  env.n = 21;
  HostMemo memo;
  memo.bind(pool, env);
  env.memo = &memo;
  EXPECT_EQ(pool.eval_int(pool.mul(pool.n(), pool.const_int(1000)), env).value(), 21000);
}

}  // namespace
}  // namespace cinch
