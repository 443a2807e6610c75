// The work of passes grows with the program: chains keep their length, and handling one op does not
// visit the whole function.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/builder.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/passes.h"
#include "pass_testing.h"

namespace cinch::passes {
namespace {

// Each link reads the value before it, in a branch of its own.
std::string branches(int length) {
  std::string ops = "%100: f32 = const_scalar {value=1}\n%10: bool = map.gt %4, %100\n";
  for (int i = 0; i < length; ++i) {
    ops += fmt::format(
        "%{2}: f32 = if_else %10 () {{\n  %{1}: f32 = map.add %{0}, %4\n  yield %{1}\n}} () {{\n"
        "  yield %{0}\n}}\n",
        100 + 2 * i, 101 + 2 * i, 102 + 2 * i);
  }
  return ops + fmt::format("%9: [f32; n] = map.mul %0, %{}\n", 100 + 2 * length);
}

TEST(Growth, ARewriteSeesWhatStandsBeforeTheOp) {
  ir::Program program = finish_of("%8: [f32; n] = map.abs %0\n%9: [f32; n] = map.neg %8\n");
  PassContext context;
  std::vector<std::size_t> before;
  rewrite_all(program, context,
              [&](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
                before.push_back(b.position());
                EXPECT_EQ(b.position(), b.function().regions[b.region().index()].ops.size());
                if (!op.operands.empty() && op.kind == ir::OpKind::map &&
                    op.attrs.scalar_op == ScalarOp::abs) {
                  const ir::ValueId x = op.operands[0];
                  return ir::ValueIds{b.map(ScalarOp::max, x, b.map(ScalarOp::neg, x))};
                }
                return std::nullopt;
              });
  // Two ops in the place of one.
  EXPECT_TRUE(std::ranges::is_sorted(before));
  const std::string text = ir::print(program);
  EXPECT_EQ(count_of(text, "map.max"), 1) << text;
  EXPECT_EQ(count_of(text, "map.abs"), 0) << text;
}

TEST(Growth, BranchesBehindBranches) {
  ir::Program program = finish_of(branches(200));
  const std::string text = after(
      program, {simplify, eliminate_common_values, convert_if_to_select, eliminate_dead_values});
  EXPECT_EQ(count_of(text, "if_else"), 0);
  EXPECT_EQ(count_of(text, "map.add"), count_of(text, "map.select"));
  expect_same_meaning(finish_of(branches(20)), {simplify, convert_if_to_select, simplify});
}

// A constant is read from a table before its formula gets long.
std::string constants(int length) {
  std::string ops = "%10: [u32; 4] = iota\n%100: [f32; 4] = convert %10\n";
  for (int i = 0; i < length; ++i) {
    ops += fmt::format("%{}: [f32; 4] = map.mul %{}, %100\n", 101 + i, 100 + i);
  }
  return ops + fmt::format(
                   "%11: u32 = const_scalar {{value=2}}\n%12: f32 = gather %{}, %11\n"
                   "%9: [f32; n] = map.mul %0, %12\n",
                   100 + length);
}

TEST(Growth, LongConstantsBecomeTables) {
  PassContext context = context_with_interpreter();
  ir::Program program = finish_of(constants(100));
  fold_constant_arrays(program, context);
  eliminate_dead_values(program, context);
  const std::string text = ir::print(program);
  EXPECT_LE(count_of(text, "map.mul"), 2) << text;
  EXPECT_EQ(count_of(text, "map.mul %0, "), 1) << text;
  expect_same_meaning(finish_of(constants(100)), {fold_constant_arrays});
}

}  // namespace
}  // namespace cinch::passes
