// Numbers in texts.
#include "runtime/core/numbers/parse_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cinch {
namespace {

using testing::Optional;

TEST(ParseNumber, ReadsAllForms) {
  EXPECT_THAT(parse_number("0.25"), Optional(0.25));
  EXPECT_THAT(parse_number("-3"), Optional(-3.0));
  EXPECT_THAT(parse_number("+1e-3"), Optional(1e-3));
  EXPECT_THAT(parse_number("0x1.8p-3"), Optional(0.1875));
  EXPECT_THAT(parse_number("-0X1p+2"), Optional(-4.0));
  EXPECT_THAT(parse_number("-inf"), Optional(-std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(std::isnan(parse_number("nan").value_or(0)));
  EXPECT_TRUE(std::signbit(parse_number("-0").value_or(0)));
}

TEST(ParseNumber, WantsANumberAndNothingElse) {
  for (const char* text : {"", "-", "0x", "1,5", "1.5 ", " 1", "--1", "+-1", "0x-1", "1e999", "x"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

}  // namespace
}  // namespace cinch
