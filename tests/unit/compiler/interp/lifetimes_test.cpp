// When values are no longer needed: memory is that of the values alive together.
#include "compiler/interp/evaluator.h"

#include <gtest/gtest.h>

#include "compiler/interp/interp.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/ir.h"

namespace cinch::interp {
namespace {

struct Draft {
  ir::Program program;
  ir::Function function = ir::make_function(ir::FunctionKind::Finish);
  ir::Builder b{program, function};
};

std::vector<ir::ValueId> freed_by(const ir::Function& function, ir::ValueId by) {
  return last_read_by(function)[function.values[by.index()].def.index()];
}

TEST(Lifetimes, EndWithTheLastRead) {
  Draft d;
  const ir::ValueId g = d.b.gradient();
  const ir::ValueId a = d.b.map(ScalarOp::neg, g);
  const ir::ValueId unread = d.b.map(ScalarOp::abs, g);
  const ir::ValueId c = d.b.map(ScalarOp::add, a, a);
  d.function.results.output = c;
  EXPECT_EQ(freed_by(d.function, a), std::vector<ir::ValueId>{});
  EXPECT_EQ(freed_by(d.function, unread), (std::vector{g, unread}));
  EXPECT_EQ(freed_by(d.function, c), std::vector{a});
}

TEST(Lifetimes, AReadInALoopIsOneOfTheLoop) {
  Draft d;
  const ir::ValueId g = d.b.gradient();
  const ir::ValueId a = d.b.map(ScalarOp::neg, g);
  ir::ValueId inside;
  const ir::ValueIds made = d.b.for_loop(d.b.exprs().const_int(0), d.b.exprs().const_int(3), {g},
                                         [&](ir::ValueId, std::span<const ir::ValueId> carried) {
                                           inside = d.b.map(ScalarOp::add, carried[0], a);
                                           return ir::ValueIds{inside};
                                         });
  d.function.results.output = made[0];
  const std::vector<ir::ValueId> freed = freed_by(d.function, made[0]);
  EXPECT_NE(std::ranges::find(freed, a), freed.end());
  const std::vector<ir::ValueId> by_body = freed_by(d.function, inside);
  EXPECT_EQ(std::ranges::find(by_body, a), by_body.end());
}

}  // namespace
}  // namespace cinch::interp
