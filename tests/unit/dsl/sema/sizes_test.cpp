// Facts about sizes that are proved, and false ones that are not.
#include "dsl/sema/sizes/size_prover.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cinch::sema {
namespace {

class Sizes : public testing::Test {
 protected:
  HostExprId c(std::int64_t value) { return pool.const_int(value); }
  HostExprId ratio_n() {
    const HostExprId ratio = pool.param(0, HostType::F32);
    const HostExprId n = pool.cast(pool.n(), HostType::F32);
    return pool.cast(pool.make(HostOp::Ceil, pool.mul(ratio, n)), HostType::Int);
  }

  HostExprPool pool;
  SizeProver sizes{pool};
  HostExprId n = pool.n();
};

TEST_F(Sizes, PolynomialsAreEqualHoweverTheyAreWritten) {
  const HostExprId a = pool.mul(pool.add(n, c(1)), pool.sub(n, c(1)));
  const HostExprId b = pool.sub(pool.mul(n, n), c(1));
  EXPECT_TRUE(sizes.proves_equal(a, b));
  EXPECT_FALSE(sizes.proves_equal(a, n));
  EXPECT_TRUE(sizes.proves_different(pool.add(n, c(1)), n));
  EXPECT_FALSE(sizes.proves_different(pool.mul(n, c(2)), n));
}

TEST_F(Sizes, EqualArgumentsMakeEqualAtoms) {
  const HostExprId a = pool.ceil_div(pool.add(n, n), c(8));
  const HostExprId b = pool.ceil_div(pool.mul(c(2), n), c(8));
  EXPECT_TRUE(sizes.proves_equal(a, b));
}

TEST_F(Sizes, MatrixProgramsKnowNAsRowsTimesColumns) {
  const HostExprId rc = pool.mul(pool.rows(), pool.cols());
  EXPECT_FALSE(sizes.proves_equal(pool.rows(), pool.cols()));
  SizeProver matrix(pool);
  matrix.set_matrix(true);
  EXPECT_TRUE(matrix.proves_equal(n, rc));
}

TEST_F(Sizes, TensorsHaveFewerThan2To32Elements) {
  const HostExprId rc = pool.mul(pool.rows(), pool.cols()), most = c(std::int64_t{UINT32_MAX});
  SizeProver matrix(pool);
  matrix.set_matrix(true);
  EXPECT_TRUE(sizes.proves_less_equal(n, most));
  const auto padded = [&](std::int64_t row) { return pool.mul(pool.ceil_div(n, c(row)), c(row)); };
  EXPECT_TRUE(sizes.proves_less_equal(padded(64), pool.add(most, c(1))));
  EXPECT_FALSE(sizes.proves_less_equal(padded(64), most));
  EXPECT_FALSE(sizes.proves_less_equal(padded(100), pool.add(most, c(1))));
  EXPECT_TRUE(matrix.proves_less_equal(rc, most));
  EXPECT_TRUE(matrix.proves_less_equal(pool.mul(c(2), rc), pool.mul(c(2), most)));
  EXPECT_FALSE(matrix.proves_less_equal(pool.add(rc, c(1)), most));
  EXPECT_FALSE(matrix.proves_less_equal(pool.mul(rc, pool.rows()), most));
  EXPECT_FALSE(matrix.proves_less_equal(pool.mul(pool.rows(), pool.rows()), most));
}

TEST_F(Sizes, ClampStaysBelowItsUpperEnd) {
  const HostExprId k = pool.clamp(ratio_n(), c(1), n);
  EXPECT_TRUE(sizes.proves_less_equal(k, n));
  EXPECT_TRUE(sizes.proves_nonnegative(k));
  EXPECT_FALSE(sizes.proves_less_equal(n, k));
  EXPECT_FALSE(sizes.proves_less_equal(c(1), k));  // n may be 0
  EXPECT_TRUE(sizes.has_bound_in_n(k));
  EXPECT_FALSE(sizes.has_bound_in_n(ratio_n()));
}

TEST_F(Sizes, CountsAreNeverAboveTheirBound) {
  const HostExprId m = pool.count(0, pool.min(n, pool.mul(c(2), c(100))));
  EXPECT_TRUE(sizes.proves_less_equal(m, n));
  EXPECT_TRUE(sizes.proves_less_equal(m, c(200)));
  EXPECT_FALSE(sizes.proves_less_equal(m, c(199)));
}

TEST_F(Sizes, RowsOfChunksHoldEveryElement) {
  const HostExprId rows = pool.ceil_div(n, c(512));
  EXPECT_TRUE(sizes.proves_less_equal(n, pool.mul(rows, c(512))));
  EXPECT_TRUE(sizes.proves_less_equal(n, pool.mul(rows, c(1024))));
  EXPECT_FALSE(sizes.proves_less_equal(n, pool.mul(rows, c(511))));
  EXPECT_TRUE(sizes.proves_less_equal(rows, n));
}

TEST_F(Sizes, RangesOfParametersCount) {
  EXPECT_FALSE(sizes.proves_nonnegative(ratio_n()));
  sizes.set_param_range(0, rt::ParamRange{0.0, 1.0, true, false});
  EXPECT_TRUE(sizes.proves_nonnegative(ratio_n()));
}

TEST_F(Sizes, StrictlyLessNeedsRoom) {
  EXPECT_TRUE(sizes.proves_less(n, pool.add(n, c(1))));
  EXPECT_FALSE(sizes.proves_less(n, n));
  EXPECT_TRUE(sizes.proves_less_equal(pool.mul(c(2), pool.min(n, c(5))), c(10)));
  EXPECT_FALSE(sizes.proves_less_equal(pool.sub(n, c(1)), pool.sub(n, c(2))));
}

TEST_F(Sizes, QuotientsGrowWithWhatIsDivided) {
  const HostExprId m = pool.count(0, n);
  const auto half = [&](HostExprId size) { return pool.div(pool.add(size, c(1)), c(2)); };
  EXPECT_TRUE(sizes.proves_less_equal(half(n), n));
  EXPECT_TRUE(sizes.proves_less_equal(half(m), half(n)));
  EXPECT_TRUE(sizes.proves_less_equal(half(m), pool.ceil_div(n, c(2))));
  EXPECT_TRUE(sizes.proves_less_equal(pool.ceil_div(m, c(3)), pool.ceil_div(n, c(3))));
  EXPECT_TRUE(sizes.proves_less_equal(pool.add(half(m), pool.div(m, c(2))), n));
  EXPECT_FALSE(sizes.proves_less_equal(half(n), half(m)));
  EXPECT_FALSE(sizes.proves_less_equal(pool.div(pool.add(n, c(2)), c(2)), n));  // n may be 0
}

// All small quotients that are proved to be at most another size are.
TEST_F(Sizes, NothingFalseIsProvedOfQuotients) {
  const HostExprId m = pool.count(0, n);
  std::vector<HostExprId> made;
  for (const HostExprId x : {n, m}) {
    for (int more = -1; more <= 2; ++more) {
      for (int by = 2; by <= 3; ++by) {
        made.push_back(pool.div(pool.add(x, c(more)), c(by)));
        made.push_back(pool.ceil_div(pool.add(x, c(more)), c(by)));
        made.push_back(pool.sub(n, pool.mul(made.back(), c(2))));
      }
    }
  }
  int proved = 0;
  for (const HostExprId a : made) {
    for (const HostExprId b : made) {
      if (!sizes.proves_less_equal(a, b)) continue;
      ++proved;
      for (std::int64_t size = 0; size < 9; ++size) {
        for (std::int64_t count = 0; count <= size; ++count) {
          const HostEnv env{.n = size, .rows = size, .counts = {&count, 1}};
          EXPECT_LE(*pool.eval_int(a, env), *pool.eval_int(b, env)) << size << " " << count;
        }
      }
    }
  }
  EXPECT_GT(proved, 200);
}

TEST_F(Sizes, TheLesserOfAFloatAndALiteralHasABound) {
  const HostExprId ratio = pool.param(0, HostType::F64);
  const auto size_of = [&](HostOp op, HostExprId other) {
    return pool.cast(pool.make(op, ratio, other), HostType::Int);
  };
  EXPECT_TRUE(sizes.has_bound_in_n(size_of(HostOp::Min, pool.const_f64(8))));
  EXPECT_FALSE(sizes.has_bound_in_n(size_of(HostOp::Max, pool.const_f64(8))));
  EXPECT_FALSE(sizes.has_bound_in_n(size_of(HostOp::Min, pool.const_f64(INFINITY))));
  const HostExprId least = pool.make(HostOp::Min, ratio, pool.const_f64(8));
  const HostExprId rows = pool.cast(pool.ceil_div(n, c(4)), HostType::F64);
  const HostExprId product = pool.cast(pool.mul(least, rows), HostType::Int);
  const HostExprId square = pool.cast(pool.mul(least, least), HostType::Int);
  EXPECT_FALSE(sizes.has_bound_in_n(square));  // of a negative number
  SizeProver known(pool);
  known.set_param_range(0, rt::ParamRange{0.0, 8.0, false, false});
  EXPECT_TRUE(known.has_bound_in_n(product));
  EXPECT_TRUE(known.has_bound_in_n(square));
}

}  // namespace
}  // namespace cinch::sema
