// Parameters' values in host expressions.
#include "runtime/core/params.h"
#include "runtime/core/sizes/host_expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cinch {
namespace {

TEST(ParamValueTest, FloatsRoundToTheirTypeUnlessF64IsAskedFor) {
  EXPECT_EQ(make_param_value(kF16, HostType::F32, 0.1).as_f32(), 0.0999755859375f);
  EXPECT_EQ(make_param_value(kBF16, HostType::F32, 0.1).as_f32(), 0.10009765625f);
  EXPECT_EQ(make_param_value(kF32, HostType::F64, 0.1).as_f64(), 0.1);
  EXPECT_EQ(make_param_value(kF16, HostType::F64, 0.1).as_f64(), 0.1);
  EXPECT_EQ(make_param_value(kF64, HostType::F64, 0.1).as_f64(), 0.1);
}

TEST(ParamValueTest, IntegersAndBooleansKeepTheirValue) {
  EXPECT_EQ(make_param_value(kU32, HostType::Int, 4294967295.0).as_int(), 4294967295);
  EXPECT_TRUE(make_param_value(kBool, HostType::Bool, 1).as_bool());
  EXPECT_FALSE(make_param_value(kBool, HostType::Bool, 0).as_bool());
}

TEST(ParamValueTest, TheNodeSaysWhichTypeIsAskedFor) {
  HostExprPool pool;
  EXPECT_EQ(param_type(pool, 2, kF16), HostType::F64);
  pool.param(2, HostType::F32);
  EXPECT_EQ(param_type(pool, 2, kF16), HostType::F32);
  EXPECT_EQ(param_type(pool, 1, kU8), HostType::Int);
}

TEST(ParamValueTest, HostValuesHaveAnElementType) {
  for (HostType type : {HostType::Int, HostType::F64, HostType::Bool}) {
    EXPECT_EQ(host_type_of(dtype_of(type)), type);
  }
  EXPECT_EQ(dtype_of(HostType::F32), kF32);
}

TEST(ParamRangeTest, EndsAreInOrOut) {
  const rt::ParamRange open_low{0.0, 1.0, true, false};
  EXPECT_FALSE(rt::is_within(open_low, kF64, 0));
  EXPECT_TRUE(rt::is_within(open_low, kF64, 1));
  EXPECT_FALSE(rt::is_within(open_low, kF64, 1.5));
  EXPECT_EQ(rt::range_text(open_low), "(0, 1]");
}

TEST(ParamRangeTest, AbsentSidesAreUnbounded) {
  const double infinity = std::numeric_limits<double>::infinity();
  const rt::ParamRange open_high{0.0, {}, false, true};
  EXPECT_TRUE(rt::is_within(open_high, kF64, 1e300));
  EXPECT_FALSE(rt::is_within(open_high, kF64, infinity));
  EXPECT_TRUE(rt::is_within({0.0, {}, false, false}, kF64, infinity));
  EXPECT_FALSE(rt::is_within(open_high, kF64, std::nan("")));
  EXPECT_EQ(rt::range_text(open_high), "[0, inf)");
}

TEST(ParamRangeTest, RoundingMustNotReachAnEndThatIsOut) {
  const rt::ParamRange positive{0.0, {}, true, true};
  EXPECT_TRUE(rt::is_within(positive, kF32, 3e38));
  EXPECT_FALSE(rt::is_within(positive, kF32, 1e300)) << "infinity as f32";
  EXPECT_FALSE(rt::is_within(positive, kF32, 1e-60)) << "0 as f32";
  EXPECT_FALSE(rt::is_within(positive, kF16, 7e4)) << "infinity as f16";
  const rt::ParamRange below_one{0.0, 1.0, false, true};
  EXPECT_FALSE(rt::is_within(below_one, kF32, 0.999999999));
  EXPECT_TRUE(rt::is_within(below_one, kF64, 0.999999999));
}

TEST(ParamRangeTest, IncludedEndsAreRoundedToo) {
  // 0.1 as f32 is above 0.1.
  EXPECT_TRUE(rt::is_within({0.0, 0.1, false, false}, kF32, 0.1));
  EXPECT_FALSE(rt::is_within({0.0, 0.1, false, false}, kF32, 0.11));
}

TEST(ParamRangeTest, TextsTellWhatRoundingMakesWhereThatIsOutside) {
  const rt::ParamRange positive{0.0, {}, true, true};
  EXPECT_EQ(rt::outside_text(positive, kF32, 1e300), "1e+300 (inf as f32)");
  EXPECT_EQ(rt::outside_text(positive, kF32, -1.1), "-1.1");
  EXPECT_EQ(rt::outside_text(positive, kI32, -1), "-1");
}

TEST(ParamRangeTest, ReadsAsPrograms) {
  EXPECT_EQ(rt::range_text(kF32, {0.0, 1.0, true, false}), "(0, 1]");
  EXPECT_EQ(rt::range_text(kF32, {0.0, {}, false, false}), "[0, inf)");
  EXPECT_EQ(rt::range_text(kF32, {{}, 0.5, false, true}), "(-inf, 0.5)");
  EXPECT_EQ(rt::range_text(kU32, {1.0, 8.0, false, false}), "1..=8");
}

}  // namespace
}  // namespace cinch
