// The manager: order, printing, times, limit, and a pass that breaks a program.
#include "compiler/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "runtime/core/check.h"
#include "tests/unit/compiler/ir/all_ops.h"

namespace cinch::pipeline {
namespace {

ir::Program all_ops() {
  rt::Result<ir::Program> program = ir::parse(ir::kAllOps);
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

TEST(Pipeline, NamesAreDistinctAndOrdered) {
  std::set<std::string_view> names;
  for (const Pass& pass : all_passes()) EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
  for (std::string_view name : standard_order()) EXPECT_NE(find_pass(name), nullptr) << name;
  EXPECT_EQ(find_pass("no_such_pass"), nullptr);
}

TEST(Pipeline, OpensTheBigOperators) {
  ir::Program program = all_ops();
  const Report report = run(program, {});
  EXPECT_EQ(ir::find_fault(program), std::nullopt);
  EXPECT_EQ(report.times.size(), standard_order().size());
  EXPECT_GT(report.num_rewrites, 0);
  for (const ir::Function& function : program.functions) {
    for (const ir::Op& op : function.ops) {
      EXPECT_NE(op.kind, ir::OpKind::top_k);
      EXPECT_NE(op.kind, ir::OpKind::kth_largest);
      EXPECT_NE(op.kind, ir::OpKind::orthonormalize);
      EXPECT_NE(op.kind, ir::OpKind::hadamard);
    }
  }
}

TEST(Pipeline, ASecondRunFindsNothing) {
  ir::Program program = all_ops();
  run(program, {});
  const std::string once = ir::print(program);
  run(program, {});
  EXPECT_EQ(ir::print(program), once);
}

TEST(Pipeline, PrintsAfterThePassesNamed) {
  std::vector<std::string> titles;
  Options options;
  options.passes = {"simplify", "eliminate_dead_values"};
  options.print_after = {"simplify"};
  options.print = [&](std::string_view title, const std::string& text) {
    titles.emplace_back(title);
    EXPECT_THAT(text, testing::HasSubstr("name=\"all\""));
  };
  ir::Program program = all_ops();
  run(program, options);
  EXPECT_EQ(titles, (std::vector<std::string>{"after simplify"}));
  titles.clear();
  options.print_after = {"all"};
  run(program, options);
  EXPECT_EQ(titles.size(), 2u);
}

TEST(Pipeline, EveryLimitLeavesASoundProgram) {
  ir::Program whole = all_ops();
  const std::int64_t total = run(whole, {}).num_rewrites;
  for (std::int64_t limit = 0; limit <= total; ++limit) {
    ir::Program program = all_ops();
    Options options;
    options.pass_limit = limit;
    EXPECT_EQ(run(program, options).num_rewrites, limit);
  }
}

TEST(Pipeline, ABrokenProgramNamesItsStage) {
  ir::Program program = all_ops();
  program.state_inits.clear();
  try {
    run(program, {});
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.stage(), "lower");
  }
}

}  // namespace
}  // namespace cinch::pipeline
