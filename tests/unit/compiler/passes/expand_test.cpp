// Expansions, folding of arrays and selects from branches: the same bits, and the form that
// kernels are made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/unit/compiler/passes/pass_testing.h"

namespace cinch::passes {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<PassFunction> kAll = {
    simplify, eliminate_common_values, expand_matrix_ops,    expand_selection,
    simplify, eliminate_common_values, eliminate_dead_values};

std::string expanded(const std::string& ops, const std::vector<PassFunction>& passes) {
  const ir::Program program = finish_of(ops);
  expect_same_meaning(program, passes);
  expect_same_meaning(program, kAll);
  ir::Program changed = program;
  return after(changed, passes);
}

// top_k of the vector %5 that `make` makes from the gradient, scattered so that every place shows.
std::string top_of(const std::string& size, const std::string& make) {
  return make + " %6: [u32; " + size + "] = top_k %5 {size=" + size +
         ", axis=all} %7: [f32; n] = map.mul %0, %4 %8: [f32; " + size +
         "] = fill %1 %9: [f32; n] = scatter %7, %6, %8";
}

class TopK : public testing::TestWithParam<std::tuple<const char*, const char*>> {};
TEST_P(TopK, ExpandsToHistogramsWithTheSameBits) {
  const auto [type, size] = GetParam();
  const std::string make = "%5: [" + std::string(type) + "; n] = convert %0";
  const std::string text = expanded(top_of(size, make), {expand_selection});
  EXPECT_THAT(text, Not(HasSubstr("top_k")));
  EXPECT_THAT(text, HasSubstr("histogram"));
}
INSTANTIATE_TEST_SUITE_P(Types, TopK,
                         testing::Combine(testing::Values("f16", "bf16", "f64", "i32", "u32", "i8",
                                                          "u5", "i64", "u64", "bool", "f8e4m3"),
                                          testing::Values("min(n, 1)", "ceil_div(n, 3)", "n")));

TEST(ExpandSelection, OrdersFloatsWithNanAndZeros) {
  const std::string nans =
      "%10: f32 = const_scalar {value=nan} %11: f32 = const_scalar {value=0.5} "
      "%12: [bool; n] = map.gt %0, %11 %5: [f32; n] = map.select %12, %10, %0";
  EXPECT_EQ(count_of(expanded(top_of("ceil_div(n, 2)", nans), {expand_selection}), "histogram"), 4);
}

TEST(ExpandSelection, MagnitudesAreTheirOwnKeys) {
  const std::string text =
      expanded(top_of("ceil_div(n, 4)", "%5: [f32; n] = map.abs %0"), {expand_selection});
  EXPECT_EQ(count_of(text, "bitcast"), 1);
}

TEST(ExpandSelection, SelectsNothing) {
  expanded(top_of("0", "%5: [f32; n] = map.neg %0"), {expand_selection});
}

class Kth : public testing::TestWithParam<std::tuple<const char*, const char*>> {};
TEST_P(Kth, ExpandsWithTheSameBits) {
  const auto [type, size] = GetParam();
  const std::string t = type;
  const std::string text =
      expanded("%5: [" + t + "; n] = convert %0 %6: " + t + " = kth_largest %5 {size=" + size +
                   ", axis=all} %7: f32 = convert %6 %9: [f32; n] = fill %7",
               {expand_selection});
  EXPECT_THAT(text, Not(HasSubstr("kth_largest")));
}
INSTANTIATE_TEST_SUITE_P(Types, Kth,
                         testing::Combine(testing::Values("f64", "f16", "i32", "u7", "i16"),
                                          testing::Values("0", "min(n, 1)", "ceil_div(n, 3)",
                                                          "n")));

TEST(ExpandSelection, RowsAreSorted) {
  const std::string text = expanded(
      "%5: [f32; ceil_div(n, 8), 8] = chunk %0 %6: [u32; ceil_div(n, 8), 3] = top_k %5 {size=3, "
      "axis=1} %7: [f32; ceil_div(n, 8), 1] = kth_largest %5 {size=2, axis=1} %8: [f32; "
      "ceil_div(n, "
      "8), 8] = map.sub %5, %7 %10: [f32; ceil_div(n, 8), 3] = convert %6 %11: [f32; ceil_div(n, "
      "8), "
      "1] = reduce %10, %1 {axis=1, combiner=add} %12: [f32; ceil_div(n, 8), 8] = map.add %8, %11 "
      "%9: "
      "[f32; n] = unchunk %12",
      {expand_selection});
  EXPECT_THAT(text, HasSubstr("argsort"));
  EXPECT_THAT(text, Not(HasSubstr("top_k")));
}

std::string selected_in_rows_of(const std::string& columns) {
  const std::string rows = "ceil_div(n, " + columns + "), ";
  return expanded("%5: [f32; " + rows + columns + "] = chunk %0 %6: [u32; " + rows +
                      "7] = top_k %5 {size=7, axis=1} " + "%7: [f32; " + rows +
                      "1] = kth_largest %5 {size=9, axis=1} %8: [f32; " + rows + columns +
                      "] = map.sub %5, %7 %10: [f32; " + rows + "7] = convert %6 %11: [f32; " +
                      rows + "1] = reduce %10, %1 {axis=1, combiner=add} %12: [f32; " + rows +
                      columns + "] = map.add %8, %11 %9: [f32; n] = unchunk %12",
                  {expand_selection});
}

TEST(ExpandSelection, LongRowsAreCounted) {
  const std::string text = selected_in_rows_of("1031");
  EXPECT_THAT(text, Not(HasSubstr("argsort")));
  EXPECT_THAT(text, Not(HasSubstr("top_k")));
  EXPECT_THAT(text, Not(HasSubstr("mark_largest")));
  EXPECT_THAT(text, HasSubstr("nonzero"));
}

TEST(ExpandSelection, TheLargestOfRowsThatFitATileAreMarked) {
  const std::string text = selected_in_rows_of("1024");
  EXPECT_THAT(text, Not(HasSubstr("argsort")));
  EXPECT_THAT(text, Not(HasSubstr("top_k")));
  EXPECT_THAT(text, Not(HasSubstr("nonzero")));
  EXPECT_THAT(text, HasSubstr("mark_largest"));
  EXPECT_THAT(text, HasSubstr("list_marked"));
}

TEST(ExpandMatrixOps, OrthonormalizeBecomesALoop) {
  const std::string text = expanded(
      "%5: [f32; ceil_div(n, 4), 4] = chunk %0 %6: [f32; ceil_div(n, 4), 4] = orthonormalize %5 "
      "%9: "
      "[f32; n] = unchunk %6",
      {expand_matrix_ops});
  EXPECT_THAT(text, HasSubstr("for_loop"));
  EXPECT_THAT(text, Not(HasSubstr("orthonormalize")));
}

TEST(ExpandColumnSums, GathersNoRowBehindTheLast) {
  const std::string matrix = "[f32; n, min(n, 1)]";
  const std::string text = expanded(
      "%5: " + matrix + " = reshape %0 {proved} %6: [f32; 1, min(n, 1)] = reduce %5, %1 " +
          "{axis=0, combiner=add} %7: " + matrix + " = fill %6 %9: [f32; n] = reshape %7 {proved}",
      {expand_column_sums});
  EXPECT_THAT(text, HasSubstr("keep"));
}

TEST(Prelude, MessagesAboutAnExpansionPointAtItsOperator) {
  const dsl::Span place{0, 17, 23};
  ir::Program program = finish_of(top_of("ceil_div(n, 4)", "%5: [f32; n] = map.neg %0"));
  std::vector<ir::Op>& ops = program.functions[0].ops;
  for (ir::Op& op : ops) op.span = place;
  after(program, {expand_selection});
  for (const ir::Op& op : ops) EXPECT_EQ(op.span, place);
}

std::string hadamard_of(int length) {
  const std::string cols = std::to_string(length);
  const std::string rows = "[f32; ceil_div(n, " + cols + "), " + cols + "]";
  return "%5: " + rows + " = chunk %0 %6: " + rows + " = hadamard %5 %9: [f32; n] = unchunk %6";
}

std::string expanded_hadamard(int length) {
  return expanded(hadamard_of(length), {expand_matrix_ops});
}

// Rows too long to interpret often: tests only the form.
std::string form_of_hadamard(int length) {
  ir::Program program = finish_of(hadamard_of(length));
  return after(program, {expand_matrix_ops});
}

TEST(ExpandMatrixOps, HadamardBecomesButterflies) {
  for (int length : {8, 16, 1024}) {
    EXPECT_EQ(count_of(expanded_hadamard(length), "= butterflies"), 1) << length;
    EXPECT_EQ(count_of(expanded_hadamard(length), "gather"), 0) << length;
  }
}

TEST(ExpandMatrixOps, LongRowsGoByPieces) {
  EXPECT_EQ(count_of(expanded_hadamard(2048), "= butterflies"), 1);
  EXPECT_EQ(count_of(expanded_hadamard(2048), "= gather"), 3);
  EXPECT_EQ(count_of(form_of_hadamard(65536), "= butterflies"), 2);
  EXPECT_EQ(count_of(form_of_hadamard(1 << 22), "= butterflies"), 2);
}

TEST(ExpandMatrixOps, ShortRowsGoByStages) {
  EXPECT_EQ(count_of(expanded_hadamard(4), "= gather"), 2);
}

TEST(ExpandMatrixOps, HadamardOfOneIsItself) {
  expanded("%5: [f32; n, 1] = reshape %0 %6: [f32; n, 1] = hadamard %5 %9: [f32; n] = reshape %6",
           {expand_matrix_ops});
}

TEST(ExpandMatrixOps, HadamardOfAHostSizeIsALoop) {
  ir::Program program = finish_of(
      "%5: [f32; 1, n] = reshape %0 %6: [f32; 1, n] = hadamard %5 %9: [f32; n] = reshape %6");
  EXPECT_THAT(after(program, {expand_matrix_ops}), HasSubstr("for_loop"));
}

TEST(IfToSelect, SmallScalarBranchesBecomeSelects) {
  const std::string text = expanded(
      "%5: bool = map.gt %4, %1 %6: f32 = if_else %5 () { %7: f32 = map.add %4, %1 yield %7 } () { "
      "yield %1 } %9: [f32; n] = map.mul %0, %6",
      {convert_if_to_select});
  EXPECT_THAT(text, HasSubstr("map.select"));
  EXPECT_THAT(text, Not(HasSubstr("if_else")));
}

TEST(IfToSelect, KeepsArraysChecksAndLongBranches) {
  const std::string condition = "%5: bool = map.gt %4, %1 ";
  EXPECT_THAT(expanded(condition + "%9: [f32; n] = if_else %5 () { yield %0 } () { %6: [f32; n] = "
                                   "map.neg %0 yield %6 }",
                       {convert_if_to_select}),
              HasSubstr("if_else"));
  EXPECT_THAT(
      expanded(condition + "%6: f32 = if_else %5 () { check %3 {text=\"t\"} yield %4 } () { "
                           "yield %1 } %9: [f32; n] = map.mul %0, %6",
               {convert_if_to_select}),
      HasSubstr("if_else"));
  std::string longer = condition + "%6: f32 = if_else %5 () { ";
  std::string last = "%4";
  for (int i = 100; i < 110; ++i) {
    longer += "%" + std::to_string(i) + ": f32 = map.exp " + last + " ";
    last = "%" + std::to_string(i);
  }
  longer += "yield " + last + " } () { yield %1 } %9: [f32; n] = map.mul %0, %6";
  EXPECT_THAT(expanded(longer, {convert_if_to_select}), HasSubstr("if_else"));
}

TEST(IfToSelect, LeavesARemark) {
  ir::Program program = finish_of(
      "%5: bool = map.gt %4, %1 %9: [f32; n] = if_else %5 () { yield %0 } () { yield %0 }");
  PassContext context;
  convert_if_to_select(program, context);
  ASSERT_EQ(context.remarks().size(), 1u);
  EXPECT_EQ(context.remarks()[0].text, "a branch gives an array");
}

TEST(FoldConstantArrays, TablesAreWorkedOut) {
  const ir::Program program = finish_of(
      "%5: [f32; 4] = const_array {index=0} %6: [u32; 4] = argsort %5 {axis=all} %7: [f32; 4] = "
      "gather %5, %6 %8: f32 = reduce %7, %1 {axis=all, combiner=add} %9: [f32; n] = map.mul %0, "
      "%8");
  ir::Program changed = program;
  const std::string text = after(changed, {fold_constant_arrays, eliminate_dead_values});
  EXPECT_THAT(text, HasSubstr("const_scalar {value=8}"));
  EXPECT_THAT(text, Not(HasSubstr("argsort")));
}

TEST(FoldConstantArrays, LeavesWhatDependsOnInputs) {
  ir::Program program = finish_of(
      "%5: [f32; 4] = const_array {index=0} %6: [f32; 4] = map.mul %5, %4 %7: f32 = reduce %6, %1 "
      "{axis=all, combiner=add} %9: [f32; n] = map.mul %0, %7");
  EXPECT_THAT(after(program, {fold_constant_arrays}), HasSubstr("map.mul"));
}

}  // namespace
}  // namespace cinch::passes
