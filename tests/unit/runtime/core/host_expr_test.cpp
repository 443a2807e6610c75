// Host expressions: evaluation by the language's rules, folding, bounds, text and file form.
#include "runtime/core/sizes/host_expr.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "runtime/core/check.h"

namespace cinch {
namespace {

class HostExprTest : public testing::Test {
 protected:
  HostExprId i(std::int64_t value) { return pool.const_int(value); }
  HostExprId ratio() { return pool.param(0, HostType::F32); }
  // clamp(ceil(ratio * n), 1, n), with the conversions that the language puts in.
  HostExprId k() {
    const HostExprId product = pool.mul(ratio(), pool.cast(pool.n(), HostType::F32));
    const HostExprId whole = pool.cast(pool.make(HostOp::Ceil, product), HostType::Int);
    return pool.clamp(whole, i(1), pool.n());
  }
  std::int64_t value(HostExprId id, std::int64_t n, float ratio_value = 0) {
    const HostValue params[] = {HostValue::from_f32(ratio_value)};
    HostEnv env;
    env.n = n;
    env.params = params;
    return pool.eval_int(id, env).value();
  }

  HostExprPool pool;
};

TEST_F(HostExprTest, SizesOfAProgram) {
  EXPECT_EQ(value(k(), 1000, 0.001f), 1);
  EXPECT_EQ(value(k(), 1001, 0.001f), 2);
  EXPECT_EQ(value(k(), 5, 2.0f), 5);
  EXPECT_EQ(value(k(), 0, 0.5f), 0);
  // f32 rounds n up beyond itself; as an integer it is cut to n.
  EXPECT_EQ(value(k(), 16777219, 1.0f), 16777219);
}

TEST_F(HostExprTest, EqualExpressionsHaveEqualIds) {
  EXPECT_EQ(k(), k());
  EXPECT_NE(pool.const_f32(0.0f), pool.const_f32(-0.0f));
  EXPECT_EQ(pool.const_f32(std::nanf("1")), pool.const_f32(-std::nanf("2")));
}

TEST_F(HostExprTest, FoldsAndSimplifies) {
  const HostExprId n = pool.n();
  EXPECT_EQ(pool.add(i(2), i(3)), i(5));
  EXPECT_EQ(pool.add(n, i(0)), n);
  EXPECT_EQ(pool.mul(i(1), n), n);
  EXPECT_EQ(pool.mul(n, i(0)), i(0));
  EXPECT_EQ(pool.sub(n, n), i(0));
  EXPECT_EQ(pool.add(pool.add(n, i(2)), i(3)), pool.add(n, i(5)));
  EXPECT_EQ(pool.add(i(5), n), pool.add(n, i(5)));
  EXPECT_EQ(pool.mul(pool.mul(i(2), n), i(4)), pool.mul(i(8), n));
  EXPECT_EQ(pool.align_up(pool.mul(i(32), n), i(16)), pool.mul(i(32), n));
  EXPECT_NE(pool.align_up(pool.mul(i(4), n), i(16)), pool.mul(i(4), n));
  EXPECT_EQ(pool.min(n, n), n);
  EXPECT_EQ(pool.select(pool.const_bool(false), i(1), n), n);
  EXPECT_EQ(pool.cast(n, HostType::Int), n);
}

TEST_F(HostExprTest, ConstantsThatOverflowAreNotRegrouped) {
  const HostExprId huge = i(7770770000000), beyond = pool.mul(i(-803970770000001), huge);
  EXPECT_FALSE(pool.is_const(beyond));
  EXPECT_FALSE(pool.is_const(pool.mul(beyond, i(-8039529))));
  const HostExprId top = i(std::numeric_limits<std::int64_t>::max());
  EXPECT_FALSE(pool.is_const(pool.add(pool.add(top, i(1)), i(2))));
  // The formula may have a value where the regrouped constant has none.
  const HostExprId square = pool.mul(huge, pool.mul(huge, pool.n()));
  EXPECT_EQ(value(square, 0), 0);
}

TEST_F(HostExprTest, IntegerRules) {
  EXPECT_EQ(pool.div(i(-7), i(2)), i(-3));
  EXPECT_EQ(pool.div(i(7), i(0)), i(0));
  EXPECT_EQ(pool.mod(i(-7), i(2)), i(-1));
  EXPECT_EQ(pool.mod(i(7), i(0)), i(0));
  EXPECT_EQ(pool.ceil_div(i(7), i(2)), i(4));
  EXPECT_EQ(pool.ceil_div(i(7), i(0)), i(0));
  EXPECT_EQ(pool.align_up(i(17), i(16)), i(32));
  EXPECT_EQ(pool.make(HostOp::Shl, i(3), i(4)), i(48));
  EXPECT_EQ(pool.make(HostOp::Shr, i(-8), i(1)), i(-4));
  EXPECT_EQ(pool.cast(pool.const_f32(-2.9f), HostType::Int), i(-2));
  EXPECT_EQ(pool.cast(pool.const_f64(1e300), HostType::Int), i(INT64_MAX));
  EXPECT_EQ(pool.cast(pool.const_f32(std::nanf("")), HostType::Int), i(0));
  EXPECT_EQ(pool.cast(pool.const_bool(true), HostType::Int), i(1));
  EXPECT_EQ(pool.make(HostOp::Log2, pool.const_f32(8)), pool.const_f32(3));
}

TEST_F(HostExprTest, OverflowIsAnErrorThatNamesTheFormula) {
  const HostExprId square = pool.mul(pool.n(), pool.n());
  const HostExprId sum = pool.add(square, square);
  HostEnv env;
  env.n = 3000000000;
  EXPECT_EQ(pool.eval_int(square, env).value(), 9000000000000000000);
  const auto found = pool.eval_int(sum, env);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, rt::ErrorKind::Overflow);
  EXPECT_EQ(found.error().message, "`n * n + n * n` does not fit in 64 bits for n = 3000000000");
  // An operation that would overflow is not folded: evaluation reports the error.
  EXPECT_FALSE(pool.eval(pool.add(i(INT64_MAX), i(1)), env));
  EXPECT_FALSE(pool.eval(pool.make(HostOp::Neg, i(INT64_MIN)), env));
  EXPECT_FALSE(pool.eval(pool.div(i(INT64_MIN), i(-1)), env));
  EXPECT_FALSE(pool.eval(pool.make(HostOp::Shl, i(1), i(63)), env));
}

TEST_F(HostExprTest, TheBranchNotTakenMayFail) {
  const HostExprId big = pool.mul(i(INT64_MAX), pool.n());
  const HostExprId small_n = pool.make(HostOp::Lt, pool.n(), i(2));
  const HostExprId chosen = pool.select(small_n, big, pool.n());
  EXPECT_EQ(value(chosen, 5), 5);
  EXPECT_EQ(value(chosen, 1), INT64_MAX);
  EXPECT_FALSE(pool.eval(big, HostEnv{.n = 5}));
}

TEST_F(HostExprTest, MissingOrWrongInputsAreErrors) {
  EXPECT_EQ(pool.eval(ratio(), HostEnv{}).error().kind, rt::ErrorKind::InvalidArgument);
  const HostValue wrong[] = {HostValue::from_int(3)};
  HostEnv env;
  env.params = wrong;
  EXPECT_EQ(pool.eval(ratio(), env).error().kind, rt::ErrorKind::InvalidArgument);
  EXPECT_EQ(pool.eval(pool.count(0, i(4)), env).error().kind, rt::ErrorKind::InvalidArgument);
}

TEST_F(HostExprTest, TypesAreChecked) {
  EXPECT_THROW(pool.add(pool.n(), ratio()), InternalError);
  EXPECT_THROW(pool.make(HostOp::Ceil, pool.n()), InternalError);
  EXPECT_THROW(pool.make(HostOp::And, pool.n(), pool.n()), InternalError);
  EXPECT_THROW(pool.add(pool.n(), HostExprId()), InternalError);
  EXPECT_THROW(pool.count(0, pool.count(1, i(3))), InternalError);
  EXPECT_THROW(pool.node(HostExprId(99)), InternalError);
}

TEST_F(HostExprTest, PrintsClosedFormulas) {
  const auto names = [](std::uint32_t) { return std::string("ratio"); };
  EXPECT_EQ(pool.print(k(), names), "clamp(ceil(ratio * n), 1, n)");
  const HostExprId n = pool.n(), c = pool.cols();
  EXPECT_EQ(pool.print(pool.mul(pool.add(n, c), c)), "(n + c) * c");
  EXPECT_EQ(pool.print(pool.add(n, pool.mul(i(4), c))), "n + 4 * c");
  EXPECT_EQ(pool.print(pool.sub(n, pool.sub(c, i(1)))), "n - (c - 1)");
  EXPECT_EQ(pool.print(pool.sub(pool.sub(n, c), i(1))), "n - c - 1");
  EXPECT_EQ(pool.print(pool.align_up(pool.count(2, n), i(16))), "align_up(count2, 16)");
  EXPECT_EQ(pool.print(pool.const_f32(0.1f)), "0.1");
  EXPECT_EQ(pool.print(pool.make(HostOp::Neg, pool.add(n, c))), "-(n + c)");
}

TEST_F(HostExprTest, PrintingASharedDagStaysShort) {
  HostExprId x = pool.n();
  for (int round = 0; round < 300; ++round) x = pool.add(x, x);
  EXPECT_LT(pool.print(x).size(), 10000u);
}

TEST_F(HostExprTest, DeepExpressionsNeedNoStack) {
  HostExprId x = pool.n();
  for (int round = 0; round < 200000; ++round) {
    x = pool.max(pool.add(x, pool.cols()), pool.rows());
  }
  HostEnv env;
  env.cols = 2;
  EXPECT_EQ(pool.eval_int(x, env).value(), 400000);
  EXPECT_EQ(pool.upper_bound(x), x);
  const HostExprId other = pool.substitute(x, [&](const HostExprNode& leaf) {
    return leaf.op == HostOp::Cols ? pool.const_int(3) : HostExprId();
  });
  EXPECT_EQ(pool.eval_int(other, env).value(), 600000);
  EXPECT_FALSE(pool.print(x).empty());
}

TEST_F(HostExprTest, UpperBoundsReplaceCounts) {
  const HostExprId n = pool.n();
  const HostExprId m = pool.count(0, pool.mul(i(2), n));
  EXPECT_EQ(pool.upper_bound(m), pool.mul(i(2), n));
  EXPECT_EQ(pool.upper_bound(pool.add(pool.mul(i(4), m), i(64))),
            pool.add(pool.mul(i(8), n), i(64)));
  EXPECT_EQ(pool.upper_bound(pool.sub(n, m)), n);
  EXPECT_EQ(pool.upper_bound(pool.ceil_div(m, i(8))), pool.ceil_div(pool.mul(i(2), n), i(8)));
  EXPECT_EQ(pool.upper_bound(pool.mul(i(-3), m)), i(0));
  EXPECT_EQ(pool.upper_bound(pool.div(n, m)), n);
  EXPECT_THROW(pool.upper_bound(pool.mul(pool.sub(n, i(5)), m)), InternalError);
  EXPECT_THROW(pool.upper_bound(pool.make(HostOp::BitXor, m, n)), InternalError);
}

// The bound holds for every count: random expressions of what bounds are known for.
TEST_F(HostExprTest, UpperBoundsHold) {
  std::mt19937 draw(5);
  std::vector<HostExprId> made = {pool.n(), i(3), pool.count(0, pool.n()),
                                  pool.count(1, pool.add(pool.mul(i(2), pool.n()), i(1)))};
  const HostOp ops[] = {HostOp::Add, HostOp::Sub,     HostOp::Mul,     HostOp::Div, HostOp::Mod,
                        HostOp::Min, HostOp::CeilDiv, HostOp::AlignUp, HostOp::Max};
  int num_bounded = 0;
  for (int round = 0; round < 3000; ++round) {
    const HostExprId a = made[draw() % made.size()], b = made[draw() % made.size()];
    const HostExprId x = pool.make(ops[draw() % 9], a, b);
    if (made.size() < 60) made.push_back(x);
    HostExprId bound;
    try {
      bound = pool.upper_bound(x);
    } catch (const InternalError& error) {
      ASSERT_EQ(error.kind(), InternalErrorKind::Limitation);
      continue;
    }
    ASSERT_FALSE(pool.has_count(bound));
    for (std::int64_t n : {0, 1, 7, 100}) {
      for (std::int64_t first : {std::int64_t{0}, n / 2, n}) {
        for (std::int64_t second : {std::int64_t{0}, n, 2 * n + 1}) {
          const std::int64_t counts[] = {first, second};
          HostEnv env;
          env.n = n;
          env.counts = counts;
          const auto found = pool.eval_int(x, env), most = pool.eval_int(bound, env);
          if (!found || !most) continue;
          ASSERT_LE(*found, *most) << pool.print(x) << " and " << pool.print(bound);
          ++num_bounded;
        }
      }
    }
  }
  EXPECT_GT(num_bounded, 2000);
}

TEST_F(HostExprTest, ImportsIntoAnotherPool) {
  HostExprPool other;
  other.const_int(77);
  const HostExprId copy = other.import(pool, k(), [&](const HostExprNode& leaf) {
    return leaf.op == HostOp::Param ? other.param(3, HostType::F32) : HostExprId();
  });
  EXPECT_EQ(other.print(copy), "clamp(ceil(param3 * n), 1, n)");
}

TEST_F(HostExprTest, JsonKeepsIdsAndValues) {
  const HostExprId kept = k();
  const HostExprId counted = pool.add(pool.count(0, kept), pool.const_int(-5));
  pool.const_f64(-0.0);
  pool.const_bool(true);
  const auto read = HostExprPool::from_json(nlohmann::json::parse(pool.to_json().dump()));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->num_nodes(), pool.num_nodes());
  for (std::size_t at = 0; at < pool.num_nodes(); ++at) {
    EXPECT_EQ(read->node(HostExprId(at)), pool.node(HostExprId(at)));
  }
  EXPECT_EQ(read->print(counted), pool.print(counted));
}

TEST_F(HostExprTest, BrokenJsonIsRefused) {
  k();
  const nlohmann::json good = pool.to_json();
  EXPECT_FALSE(HostExprPool::from_json(nlohmann::json::object()));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char* key : {"op", "type", "args", "value"}) {
      for (const nlohmann::json& bad :
           {nlohmann::json("x"), nlohmann::json(-1), nlohmann::json(nullptr), nlohmann::json({99}),
            nlohmann::json({0, 0, 0, 0}), nlohmann::json("bool")}) {
        nlohmann::json broken = good;
        broken[at][key] = bad;
        const auto read = HostExprPool::from_json(broken);
        if (!read) EXPECT_EQ(read.error().kind, rt::ErrorKind::CorruptFile);
      }
    }
  }
  nlohmann::json twice = good;
  twice.push_back(good[0]);
  EXPECT_FALSE(HostExprPool::from_json(twice));
  nlohmann::json forward = good;
  forward.back()["args"][0] = forward.size() - 1;
  EXPECT_FALSE(HostExprPool::from_json(forward));
}

}  // namespace
}  // namespace cinch
