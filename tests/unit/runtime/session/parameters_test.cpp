// Parameters of every type: rejected values, and the three forms.
#include "runtime/call/parameters.h"
#include "runtime/core/sizes/host_expr.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cinch::rt {
namespace {

TEST(CheckParameter, KnowsTypes) {
  const ParamInfo byte{"b", kU8, 0, {}};
  EXPECT_TRUE(check_parameter(byte, 255));
  EXPECT_FALSE(check_parameter(byte, 256));
  EXPECT_FALSE(check_parameter(byte, -1));
  EXPECT_FALSE(check_parameter(byte, 1.5));
  EXPECT_EQ(check_parameter(byte, 1.5).error().message, "parameter b = 1.5 is not a value of u8");
  const ParamInfo flag{"f", kBool, 0, {}};
  EXPECT_TRUE(check_parameter(flag, 1));
  EXPECT_FALSE(check_parameter(flag, 2));
  EXPECT_TRUE(check_parameter({"x", kF32, 0, {}}, std::nan("")));
  EXPECT_FALSE(check_parameter({"x", kF32, 0, ParamRange{}}, std::nan("")));
}

TEST(CheckParameter, RefusesWhatIsRoundedOutOfTheRange) {
  const ParamInfo tau{"tau", kF32, 1, ParamRange{0.0, {}, true, true}};
  EXPECT_TRUE(check_parameter(tau, 1e38));
  EXPECT_EQ(check_parameter(tau, 1e300).error().message,
            "parameter tau = 1e+300 (inf as f32) is outside (0, inf)");
  EXPECT_EQ(check_parameter(tau, 1e-60).error().message,
            "parameter tau = 1e-60 (0 as f32) is outside (0, inf)");
}

TEST(ParameterValues, GivesEachFormItsBits) {
  ProgramInfo info;
  info.params = {{"f", kF32, 0.5, {}}, {"d", kF64, 0.1, {}}, {"i", kI32, -2, {}},
                 {"b", kBool, 1, {}},  {"h", kF16, 0.1, {}}, {"bf", kBF16, 0.1, {}}};
  // A size uses the integer as f32.
  info.exprs->param(2, HostType::F32);
  const ParameterValues values(info);
  EXPECT_EQ(values.kernel_words()[0], 0x3f000000u);
  EXPECT_EQ(values.kernel_words()[1], 0x3fb999999999999aull);
  EXPECT_EQ(values.kernel_words()[2], static_cast<std::uint64_t>(-2));
  EXPECT_EQ(values.kernel_words()[3], 1u);
  EXPECT_EQ(values.kernel_words()[4], 0x3dccc000u) << "0.1 as f16, in f32";
  EXPECT_EQ(values.kernel_words()[5], 0x3dcd0000u) << "0.1 as bf16, in f32";
  EXPECT_EQ(values.host_values()[0], HostValue::from_f64(0.5));
  EXPECT_EQ(values.host_values()[1], HostValue::from_f64(0.1));
  EXPECT_EQ(values.host_values()[2], HostValue::from_f32(-2));
  EXPECT_EQ(values.host_values()[3], HostValue::from_bool(true));
  EXPECT_EQ(values.host_values()[4], HostValue::from_f64(0.1)) << "as given";
  EXPECT_EQ(values.given_words()[0], 0x3fe0000000000000u);
  EXPECT_EQ(values.given_words()[2], static_cast<std::uint64_t>(-2));
  EXPECT_EQ(values.given_words()[4], 0x3fb999999999999aull);
}

}  // namespace
}  // namespace cinch::rt
