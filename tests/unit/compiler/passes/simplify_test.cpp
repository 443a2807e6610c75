// simplify: what each rule does, and that it leaves alone what would change bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/unit/compiler/passes/pass_testing.h"

namespace cinch::passes {
namespace {

using testing::HasSubstr;
using testing::Not;

// The text of the finish without dead ops.
std::string simplified(const std::string& ops) {
  const ir::Program program = finish_of(ops);
  expect_same_meaning(program, {simplify});
  ir::Program changed = program;
  return after(changed, {simplify, eliminate_dead_values});
}

struct Case {
  const char* ops;
  const char* gone;
};

class Drops : public testing::TestWithParam<Case> {};
TEST_P(Drops, WhatChangesNothing) {
  EXPECT_THAT(simplified(GetParam().ops), Not(HasSubstr(GetParam().gone)));
}
INSTANTIATE_TEST_SUITE_P(
    Arithmetic, Drops,
    testing::Values(
        Case{"%5: f32 = const_scalar {value=1} %9: [f32; n] = map.mul %0, %5", "map.mul"},
        Case{"%5: f32 = const_scalar {value=1} %9: [f32; n] = map.mul %5, %0", "map.mul"},
        Case{"%5: f32 = const_scalar {value=-0} %9: [f32; n] = map.add %0, %5", "map.add"},
        Case{"%5: f32 = const_scalar {value=0} %9: [f32; n] = map.sub %0, %5", "map.sub"},
        Case{"%5: f32 = const_scalar {value=1} %9: [f32; n] = map.div %0, %5", "map.div"},
        Case{"%5: f32 = const_scalar {value=-8} %9: [f32; n] = map.div %0, %5", "map.div"},
        Case{
            "%5: u32 = const_scalar {value=0} %6: [u32; n] = map.add %2, %5 %9: [f32; n] = convert "
            "%6",
            "map.add"},
        Case{
            "%5: u32 = const_scalar {value=0} %6: [u32; n] = map.mul %2, %5 %9: [f32; n] = convert "
            "%6",
            "map.mul"},
        Case{
            "%5: u32 = const_scalar {value=0} %6: [u32; n] = map.shl %2, %5 %9: [f32; n] = convert "
            "%6",
            "map.shl"},
        Case{"%5: [f32; n] = map.neg %0 %9: [f32; n] = map.neg %5", "map.neg"},
        Case{"%5: [f32; n] = map.neg %0 %9: [f32; n] = map.abs %5", "map.neg"},
        Case{"%9: [f32; n] = map.max %0, %0", "map.max"},
        Case{"%9: [f32; n] = map.select %3, %0, %4", "map.select"},
        Case{"%5: [bool; n] = map.lt %0, %4 %9: [f32; n] = map.select %5, %0, %0", "map.select"},
        Case{"%5: [f64; n] = convert %0 %9: [f32; n] = convert %5", "convert"},
        Case{"%5: [u16; n] = convert %2 %6: [f32; n] = convert %5 %7: [u16; n] = convert %6 %9: "
             "[f32; n] = convert %7",
             "no such text"}));

INSTANTIATE_TEST_SUITE_P(
    Constants, Drops,
    testing::Values(
        Case{"%5: f32 = map.sqrt %1 %9: [f32; n] = map.mul %0, %5", "map.sqrt"},
        Case{"%5: f64 = convert %1 %6: f32 = convert %5 %9: [f32; n] = map.mul %0, %6", "convert"},
        Case{"%5: f32 = host_size {size=12} %9: [f32; n] = map.mul %0, %5", "host_size"},
        Case{"%5: u32 = bitcast %1 %6: f32 = convert %5 %9: [f32; n] = map.mul %0, %6",
             "bitcast"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, Drops,
    testing::Values(
        Case{"%5: [f32; n] = fill %1 %9: [f32; n] = map.mul %0, %5", "fill"},
        Case{"%5: [f32; n] = fill %4 %6: [f32; n] = gather %5, %2 %9: [f32; n] = map.add %0, %6",
             "gather"},
        Case{"%5: [u32; n] = gather %2, %2 %9: [f32; n] = convert %5", "gather"},
        Case{"%5: [f32; 1, n] = reshape %0 %6: [f32; n, 1] = transpose %5 %7: [f32; 1, n] = "
             "transpose %6 %9: [f32; n] = reshape %7",
             "transpose"},
        Case{"%5: [f32; 1, n] = reshape %0 %6: [f32; n, 1] = reshape %5 %9: [f32; n] = reshape %6",
             "reshape"}));

INSTANTIATE_TEST_SUITE_P(
    Control, Drops,
    testing::Values(
        Case{"%9: [f32; n] = if_else %3 () { %5: [f32; n] = map.neg %0 yield %5 } () { yield %0 }",
             "if_else"},
        Case{"%9: [f32; n] = for_loop %0 {begin=3, end=3} (%5: i64, %6: [f32; n]) { yield %6 }",
             "for_loop"},
        Case{
            "%9: [f32; n] = while_loop %0 {at_most=0} (%5: [f32; n]) { yield %3 } (%6: [f32; n]) { "
            "yield %6 }",
            "while_loop"}));

class Keeps : public testing::TestWithParam<Case> {};
TEST_P(Keeps, WhatChangesBits) {
  EXPECT_THAT(simplified(GetParam().ops), HasSubstr(GetParam().gone));
}
INSTANTIATE_TEST_SUITE_P(
    Arithmetic, Keeps,
    testing::Values(
        // -0 + 0 is 0.
        Case{"%5: f32 = const_scalar {value=0} %9: [f32; n] = map.add %0, %5", "map.add"},
        // Infinities times 0 are NaN.
        Case{"%5: f32 = const_scalar {value=0} %9: [f32; n] = map.mul %0, %5", "map.mul"},
        Case{"%5: f32 = const_scalar {value=3} %9: [f32; n] = map.div %0, %5", "map.div"},
        // 0 - -0 is 0.
        Case{"%5: f32 = const_scalar {value=-0} %9: [f32; n] = map.sub %0, %5", "map.sub"},
        Case{"%5: [f16; n] = convert %0 %9: [f32; n] = convert %5", "f16"},
        Case{"%5: [i32; n] = convert %0 %9: [f32; n] = convert %5", "i32"},
        Case{"%5: bool = map.lt %4, %1 %9: [f32; n] = if_else %5 () { yield %0 } () { %6: [f32; n] "
             "= "
             "map.neg %0 yield %6 }",
             "if_else"}));

TEST(Simplify, KeepsChecksOfTheBranchTaken) {
  ir::Program program = finish_of(
      "%5: bool = map.lt %4, %1 %9: [f32; n] = if_else %3 () { check %5 {text=\"here\"} yield %0 } "
      "() { yield %0 }");
  EXPECT_THAT(after(program, {simplify}), HasSubstr("check %"));
}

TEST(Simplify, StopsAtTheLimit) {
  ir::Program program = finish_of(
      "%5: [f32; n] = map.neg %0 %6: [f32; n] = map.neg %5 %7: [f32; n] "
      "= map.max %6, %6 %9: [f32; n] = map.min %7, %7");
  PassContext context;
  context.set_limit(1);
  simplify(program, context);
  EXPECT_EQ(context.num_rewrites(), 1);
}

}  // namespace
}  // namespace cinch::passes
