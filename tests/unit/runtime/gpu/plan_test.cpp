// Launches of loops: bounds guarantee neither an end nor a limited nesting.
#include "runtime/gpu/plan.h"
#include "runtime/core/sizes/host_expr.h"

#include <gtest/gtest.h>

namespace cinch::rt {
namespace {

struct LoopProgram {
  ProgramImage image;
  std::int64_t most = 0;  // rounds of every loop
  std::vector<PlannedLaunch> launches;
  std::vector<PlannedBound> bounds;

  LoopProgram() { image.size_exprs = {image.info.exprs->const_int(0), image.info.exprs->n()}; }

  Step loop(StepKind kind, std::vector<Step> body) {
    Step made{kind, 0, kNoIndex, image.size_exprs[kind == StepKind::For ? 0 : 1]};
    if (kind == StepKind::For) made.expr2 = image.size_exprs[1];
    made.body = std::move(body);
    return made;
  }
  Status plan(const Step& step) {
    const auto rounds = [&](HostExprId, HostExprId) -> Result<std::int64_t> { return most; };
    return plan_steps(image, {step}, rounds, false, launches, bounds);
  }
};

// Nested for loops around zeroing a buffer.
Step nested(LoopProgram& program, std::size_t depth) {
  Step step{StepKind::Zero, 0};
  for (std::size_t i = 0; i < depth; ++i) step = program.loop(StepKind::For, {step});
  return step;
}

TEST(PlanSteps, LoopsStandNoDeeperThanConditions) {
  LoopProgram program;
  program.most = 1;
  ASSERT_TRUE(program.plan(nested(program, kMaxGpuConditions)));
  EXPECT_EQ(program.launches.back().conditions.size(), kMaxGpuConditions);
  program.launches.clear();
  const Status status = program.plan(nested(program, kMaxGpuConditions + 1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Unavailable);
  for (const PlannedLaunch& launch : program.launches) {
    EXPECT_LE(launch.conditions.size(), kMaxGpuConditions);
  }
}

TEST(PlanSteps, LoopsOfNothingEnd) {
  for (const std::int64_t most : {std::int64_t{1} << 16, INT64_MAX}) {
    LoopProgram program;
    program.most = most;
    const Step nothing = program.loop(StepKind::While, {});
    const Status status = program.plan(program.loop(StepKind::For, {nothing}));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::Unavailable);
    EXPECT_LT(program.bounds.size(), std::size_t{1} << 21);
  }
}

}  // namespace
}  // namespace cinch::rt
