// The results of operators on elements that no test of a whole program would show.
#include "runtime/core/numbers/scalar_eval.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cinch {
namespace {

TEST(ScalarEval, BoolsHaveAMinimumAndAMaximum) {
  for (const std::uint64_t a : {0, 1}) {
    for (const std::uint64_t b : {0, 1}) {
      const std::uint64_t operands[] = {a, b};
      EXPECT_EQ(evaluate_scalar(ScalarOp::min, kBool, operands), std::min(a, b));
      EXPECT_EQ(evaluate_scalar(ScalarOp::max, kBool, operands), std::max(a, b));
    }
  }
}

}  // namespace
}  // namespace cinch
