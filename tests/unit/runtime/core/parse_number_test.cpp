// Whole numbers as people write them.
#include "runtime/core/numbers/parse_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace cinch {
namespace {

using State = ParsedCount::State;

void expect_whole(const char* text, std::uint64_t magnitude, bool is_negative = false) {
  const ParsedCount count = parse_count(text);
  EXPECT_EQ(count.state, State::Whole) << text;
  EXPECT_EQ(count.magnitude, magnitude) << text;
  EXPECT_EQ(count.is_negative, is_negative) << text;
}

TEST(ParseCount, ReadsAllForms) {
  expect_whole("0", 0);
  expect_whole("4096", 4096);
  expect_whole("0010", 10);
  expect_whole("-3", 3, true);
  expect_whole("+7", 7);
  expect_whole("0x10", 16);
  expect_whole("1e6", 1000000);
  expect_whole("2.5E+3", 2500);
  expect_whole("1500e-2", 15);
  expect_whole("64k", 64000);
  expect_whole("1.5M", 1500000);
  expect_whole("1e3k", 1000000);
  expect_whole("64Ki", 65536);
  expect_whole("0.5Ki", 512);
  expect_whole("0.001953125Ki", 2);
  expect_whole("1Gi", std::uint64_t{1} << 30);
  expect_whole("18446744073709551615", ~std::uint64_t{0});
  expect_whole("0e99999999999", 0);
}

TEST(ParseCount, AUnitMayFollow) {
  EXPECT_EQ(parse_count("64KiB", "B").magnitude, 65536U);
  EXPECT_EQ(parse_count("12B", "B").magnitude, 12U);
  EXPECT_EQ(parse_count("12", "B").magnitude, 12U);
  EXPECT_EQ(parse_count("0x1B", "B").magnitude, 27U);
  EXPECT_EQ(parse_count("12B").state, State::NoNumber);
  EXPECT_EQ(parse_count("B", "B").state, State::NoNumber);
}

TEST(ParseCount, SaysWhyATextIsNoCount) {
  for (const char* text : {"1.5", "0.3Ki", "1e-1", "1e-999999999", "1.00000000000000000000001"})
    EXPECT_EQ(parse_count(text).state, State::Fraction) << text;
  for (const char* text : {"18446744073709551616", "1e20", "1e999999999", "16777216Ti",
                           "0x10000000000000000", "123456789012345678901234567890"})
    EXPECT_EQ(parse_count(text).state, State::TooLarge) << text;
  for (const char* text : {"", "-", "x", "k", "0x", "0x-1", "1,5", "1 ", " 1", "--1", "+-1", "1e",
                           "1ki2", "1Mb", "1.2.3", "nan", "inf"})
    EXPECT_EQ(parse_count(text).state, State::NoNumber) << text;
}

}  // namespace

// Numbers in texts.

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
