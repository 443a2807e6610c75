// eliminate_common_values and eliminate_dead_values: what goes and what stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/unit/compiler/passes/pass_testing.h"

namespace cinch::passes {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string joined(const std::string& ops) {
  const ir::Program program = finish_of(ops);
  expect_same_meaning(program, {eliminate_common_values, eliminate_dead_values});
  ir::Program changed = program;
  return after(changed, {eliminate_common_values, eliminate_dead_values});
}

TEST(CommonValues, JoinsEqualMaps) {
  EXPECT_EQ(count_of(joined("%5: [f32; n] = map.abs %0 %6: [f32; n] = map.abs %0 %9: [f32; n] = "
                            "map.add %5, %6"),
                     "map.abs"),
            1);
}

TEST(CommonValues, JoinsDrawsOfOneSiteOnly) {
  const auto draws = [](const char* second) {
    return joined(std::string("%5: [f32; n] = random {site=1} %6: [f32; n] = random ") + second +
                  " %9: [f32; n] = map.add %5, %6");
  };
  EXPECT_EQ(count_of(draws("{site=1}"), "= random"), 1);
  EXPECT_EQ(count_of(draws("{site=2}"), "= random"), 2);
  EXPECT_EQ(count_of(draws("{site=1, shared}"), "= random"), 2);
}

TEST(CommonValues, TellsAttributesApart) {
  EXPECT_EQ(
      count_of(joined("%5: [f32; n] = scan %0, %1 {axis=all, combiner=add} %6: [f32; n] = scan "
                      "%0, %1 {axis=all, exclusive, combiner=add} %7: [f32; n] = scan %0, %1 "
                      "{axis=all, combiner=max} %8: [f32; n] = map.add %5, %6 %9: [f32; n] = "
                      "map.add %8, %7"),
               "= scan"),
      3);
}

TEST(CommonValues, ComparesCombiners) {
  const auto two = [](const char* second) {
    return joined(
        std::string(
            "%5: f32 = reduce %0, %1 {axis=all, combiner=region} (%20: f32, %21: f32) { %22: "
            "f32 = map.max %20, %21 yield %22 } %6: f32 = reduce %0, %1 {axis=all, "
            "combiner=region} (%30: f32, %31: f32) { %32: f32 = ") +
        second + " yield %32 } %7: f32 = map.add %5, %6 %9: [f32; n] = fill %7");
  };
  EXPECT_EQ(count_of(two("map.max %30, %31"), "= reduce"), 1);
  EXPECT_EQ(count_of(two("map.max %31, %30"), "= reduce"), 2);
  EXPECT_EQ(count_of(two("map.min %30, %31"), "= reduce"), 2);
}

TEST(CommonValues, InnerRegionsSeeOuterValuesNotEachOthers) {
  const std::string text = joined(
      "%5: [f32; n] = map.abs %0 %6: bool = map.lt %4, %1 %7: [f32; n] = if_else %6 () { %10: "
      "[f32; "
      "n] = map.abs %0 yield %10 } () { %11: [f32; n] = map.exp %0 yield %11 } %8: [f32; n] = "
      "map.exp %0 %12: [f32; n] = map.add %7, %8 %9: [f32; n] = map.add %12, %5");
  EXPECT_EQ(count_of(text, "map.abs"), 1);
  EXPECT_EQ(count_of(text, "map.exp"), 2);
}

TEST(DeadValues, GoWithWhatFedThem) {
  const std::string text =
      joined("%5: [f32; n] = map.exp %0 %6: [f32; n] = map.abs %5 %9: [f32; n] = map.neg %0");
  EXPECT_THAT(text, Not(HasSubstr("map.exp")));
  EXPECT_THAT(text, Not(HasSubstr("iota")));
}

TEST(DeadValues, ChecksStayWithWhatTheyRead) {
  const std::string text = joined(
      "%5: f32 = map.exp %4 %6: bool = map.gt %5, %4 check %6 {text=\"t\"} %9: [f32; n] = map.neg "
      "%0");
  EXPECT_THAT(text, HasSubstr("map.exp"));
}

TEST(DeadValues, AHolderOfAChecksStays) {
  const std::string text = joined(
      "%5: bool = map.gt %1, %4 %6: f32 = if_else %5 () { %7: bool = map.lt %4, %1 check %7 "
      "{text=\"t\"} yield %1 } () { yield %4 } %9: [f32; n] = map.neg %0");
  EXPECT_THAT(text, HasSubstr("check %"));
  EXPECT_THAT(text, HasSubstr("if_else"));
}

TEST(DeadValues, ResultsOfBranchesThatNobodyReads) {
  const std::string text = joined(
      "%5: bool = map.gt %1, %4 %6: [f32; n], %7: [f32; n] = if_else %5 () { %10: [f32; n] = "
      "map.exp "
      "%0 yield %10, %0 } () { yield %0, %0 } %9: [f32; n] = map.neg %7");
  EXPECT_THAT(text, Not(HasSubstr("map.exp")));
}

TEST(DeadValues, CountsThatSizesMentionAreStillFound) {
  const std::string text = joined(
      "%5: [bool; n] = map.gt %0, %4 %6: [u32; m], %7: u32 = nonzero %5 {index=0} %8: [f32; m] = "
      "fill %1 %10: f32 = const_scalar {value=0} %11: f32 = reduce %8, %10 {axis=all, "
      "combiner=add} "
      "%9: [f32; n] = fill %11");
  EXPECT_THAT(text, HasSubstr("nonzero"));
  const std::string unused = joined(
      "%5: [bool; n] = map.gt %0, %4 %6: [u32; m], %7: u32 = nonzero %5 {index=0} %9: [f32; n] = "
      "map.neg %0");
  EXPECT_THAT(unused, Not(HasSubstr("nonzero")));
}

}  // namespace
}  // namespace cinch::passes
