// Parameters' values in host expressions.
#include "runtime/core/param_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/core/param_range.h"

namespace cinch {
namespace {

TEST(ParamValueTest, FloatsRoundToTheirType) {
  EXPECT_EQ(make_param_value(kF16, HostType::F32, 0.1).as_f32(), 0.0999755859375f);
  EXPECT_EQ(make_param_value(kBF16, HostType::F32, 0.1).as_f32(), 0.10009765625f);
  EXPECT_EQ(make_param_value(kF32, HostType::F64, 0.1).as_f64(), static_cast<double>(0.1f));
  EXPECT_EQ(make_param_value(kF64, HostType::F64, 0.1).as_f64(), 0.1);
}

TEST(ParamValueTest, IntegersAndBooleansKeepTheirValue) {
  EXPECT_EQ(make_param_value(kU32, HostType::Int, 4294967295.0).as_int(), 4294967295);
  EXPECT_TRUE(make_param_value(kBool, HostType::Bool, 1).as_bool());
  EXPECT_FALSE(make_param_value(kBool, HostType::Bool, 0).as_bool());
}

TEST(ParamValueTest, TheNodeSaysWhichTypeIsAskedFor) {
  HostExprPool pool;
  EXPECT_EQ(param_type(pool, 2, kF16), HostType::F32);
  pool.param(2, HostType::F64);
  EXPECT_EQ(param_type(pool, 2, kF16), HostType::F64);
  EXPECT_EQ(param_type(pool, 1, kU8), HostType::Int);
}

TEST(ParamValueTest, HostValuesHaveAnElementType) {
  for (HostType type : {HostType::Int, HostType::F32, HostType::F64, HostType::Bool}) {
    EXPECT_EQ(host_type_of(dtype_of(type)), type);
  }
}

TEST(ParamRangeTest, EndsAreInOrOut) {
  const rt::ParamRange open_low{0.0, 1.0, true, false};
  EXPECT_FALSE(rt::is_within(open_low, 0));
  EXPECT_TRUE(rt::is_within(open_low, 1));
  EXPECT_FALSE(rt::is_within(open_low, 1.5));
  EXPECT_EQ(rt::range_text(open_low), "(0, 1]");
}

TEST(ParamRangeTest, AbsentSidesAreUnbounded) {
  const double infinity = std::numeric_limits<double>::infinity();
  const rt::ParamRange open_high{0.0, {}, false, true};
  EXPECT_TRUE(rt::is_within(open_high, 1e300));
  EXPECT_FALSE(rt::is_within(open_high, infinity));
  EXPECT_TRUE(rt::is_within({0.0, {}, false, false}, infinity));
  EXPECT_FALSE(rt::is_within(open_high, std::nan("")));
  EXPECT_EQ(rt::range_text(open_high), "[0, inf)");
}

TEST(ParamRangeTest, ReadsAsPrograms) {
  EXPECT_EQ(rt::range_text(kF32, {0.0, 1.0, true, false}), "(0, 1]");
  EXPECT_EQ(rt::range_text(kF32, {0.0, {}, false, false}), "[0, inf)");
  EXPECT_EQ(rt::range_text(kF32, {{}, 0.5, false, true}), "(-inf, 0.5)");
  EXPECT_EQ(rt::range_text(kU32, {1.0, 8.0, false, false}), "1..=8");
}

}  // namespace
}  // namespace cinch
