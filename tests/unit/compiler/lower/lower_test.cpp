// Lowering of hand-made trees: every result passes the verifier, and its text shows the wanted
// operators.
#include "compiler/lower/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "runtime/core/check.h"
#include "tests/unit/compiler/lower/tree_builder.h"

namespace cinch::sema {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string lowered(TreeBuilder& t) {
  const ir::Program program = lower::lower(t.complete());
  const std::string text = ir::print(program);
  EXPECT_EQ(ir::find_fault(program), std::nullopt) << text;
  return text;
}

// decode(w) { body(w.value) } with a body of [f32; n].
std::string lowered_decode(TreeBuilder& t, const std::function<ExprId(ExprId value)>& body) {
  const VarId w = t.wire_of_values();
  const ExprId root = body(t.value_field(w));
  t.program.decode = Body{root, w, {}};
  return lowered(t);
}

// A scalar as the whole array.
ExprId spread(TreeBuilder& t, ExprId scalar) {
  return t.call(BuiltinId::fill, t.vec(kF32, t.n()), {scalar});
}

TEST(LowerReduce, MeanIsSumAndCountThatDividesOrIsZero) {
  TreeBuilder t;
  const std::string text = lowered_decode(
      t, [&](ExprId x) { return spread(t, t.call(BuiltinId::mean, t.scalar(kF32), {x})); });
  EXPECT_THAT(text, HasSubstr("divide_or_zero"));
  EXPECT_THAT(text, HasSubstr("host_size"));
}

TEST(LowerReduce, EveryReductionVerifiesMaskedAndAlongAnAxis) {
  for (BuiltinId id : {BuiltinId::sum, BuiltinId::mean, BuiltinId::std, BuiltinId::min,
                       BuiltinId::max, BuiltinId::norm1, BuiltinId::norm2, BuiltinId::norm_inf}) {
    for (bool is_masked : {false, true}) {
      TreeBuilder t;
      lowered_decode(t, [&](ExprId x) {
        const HostExprId four = t.sizes().const_int(4);
        const HostExprId rows = t.sizes().ceil_div(t.n(), four);
        const ExprId m = t.call(BuiltinId::chunk, t.mat(kF32, rows, four), {x});
        const ExprId mask = t.op(ScalarOp::gt, {m, t.num(0)});
        const ExprId r = t.call(id, t.mat(kF32, rows, t.sizes().const_int(1)),
                                is_masked ? std::vector<ExprId>{m, mask} : std::vector<ExprId>{m});
        t.at(r).axis = 1;
        const ExprId scaled = t.op(ScalarOp::mul, {m, r});
        t.at(scaled).type = t.mat(kF32, rows, four);
        return t.call(BuiltinId::unchunk, t.vec(kF32, t.n()), {scaled});
      });
    }
  }
}

TEST(LowerReduce, ArgmaxJoinsValuesAndIndices) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const ExprId best = t.call(BuiltinId::argmax, t.scalar(kU32), {x});
    const ExprId found = t.make(ExprKind::Index, t.scalar(kF32), {x, best});
    return spread(t, found);
  });
  EXPECT_THAT(text, HasSubstr("iota"));
  EXPECT_THAT(text, HasSubstr("check_index"));
}

TEST(LowerReduce, ALambdaOfOneCommutativeOperatorBecomesThatOperator) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const VarId a = t.var("a", t.scalar(kF32)), b = t.var("b", t.scalar(kF32));
    const ExprId body = t.op(ScalarOp::max, {t.use(b), t.use(a)});
    return spread(t,
                  t.call(BuiltinId::reduce, t.scalar(kF32), {x, t.num(0), t.lambda({a, b}, body)}));
  });
  EXPECT_THAT(text, Not(HasSubstr("yield %")));
}

TEST(LowerReduce, AnyOtherLambdaBecomesARegion) {
  TreeBuilder t;
  lowered_decode(t, [&](ExprId x) {
    const VarId a = t.var("a", t.scalar(kF32)), b = t.var("b", t.scalar(kF32));
    const ExprId larger = t.op(ScalarOp::gt, {t.op(ScalarOp::abs, {t.use(b)}), t.use(a)});
    const ExprId body = t.if_else(larger, t.use(b), t.use(a));
    return t.call(BuiltinId::scan, t.vec(kF32, t.n()), {x, t.num(0), t.lambda({a, b}, body)});
  });
}

TEST(LowerControl, AnIfHandsOutWhatItsBranchesAssign) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const VarId low = t.var("low", t.scalar(kF32), true);
    const ExprId total = t.call(BuiltinId::sum, t.scalar(kF32), {x});
    const ExprId condition = t.op(ScalarOp::gt, {total, t.num(1)});
    const ExprId branch = t.if_else(condition, t.block({t.assign(low, t.num(2))}),
                                    t.block({t.assign(low, t.num(3))}));
    return t.block({t.let(low, t.num(0)), t.stmt(StmtKind::Expr, {}, branch)},
                   spread(t, t.use(low)));
  });
  EXPECT_THAT(text, HasSubstr("if_else"));
}

TEST(LowerControl, LoopsCarryWhatTheyAssign) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const VarId acc = t.var("acc", t.vec(kF32, t.n()), true);
    const VarId i = t.var("i", t.scalar(kI64));
    const VarId tau = t.var("tau", t.scalar(kF32), true);
    const ExprId step = t.op(ScalarOp::add, {t.use(acc), x});
    const StmtId loop = t.stmt(StmtKind::For, i, t.block({t.assign(acc, step)}));
    t.at(loop).size = t.sizes().const_int(0);
    t.at(loop).size2 = t.sizes().const_int(5);
    const ExprId halved = t.op(ScalarOp::mul, {t.use(tau), t.num(0.5)});
    const StmtId search = t.stmt(StmtKind::While, {}, t.block({t.assign(tau, halved)}),
                                 t.op(ScalarOp::gt, {t.use(tau), t.num(1)}));
    t.at(search).size = t.sizes().const_int(20);
    return t.block({t.let(acc, x), t.let(tau, t.num(100)), loop, search},
                   t.op(ScalarOp::mul, {t.use(acc), t.use(tau)}));
  });
  EXPECT_THAT(text, HasSubstr("for_loop"));
  EXPECT_THAT(text, HasSubstr("while_loop"));
}

TEST(LowerControl, DrawsInLoopsGoOnFromIterationToIteration) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const VarId acc = t.var("acc", t.vec(kF32, t.n()), true);
    const VarId i = t.var("i", t.scalar(kI64));
    const auto draw = [&](std::uint32_t site) {
      const ExprId id = t.call(BuiltinId::random, t.vec(kF32, t.n()), {});
      t.at(id).shared = true;
      t.at(id).site = site;
      return id;
    };
    const ExprId step = t.op(ScalarOp::add, {t.use(acc), draw(0)});
    const StmtId loop = t.stmt(StmtKind::For, i, t.block({t.assign(acc, step)}));
    t.at(loop).size = t.sizes().const_int(0);
    t.at(loop).size2 = t.sizes().const_int(5);
    return t.block({t.let(acc, x), loop}, t.op(ScalarOp::add, {t.use(acc), draw(1)}));
  });
  EXPECT_THAT(text, HasSubstr("map.sub"));
}

TEST(LowerState, AnIndexedStoreIsAScatterOverTheOldValue) {
  TreeBuilder t;
  t.program.info.name = "test";
  t.program.info.states = {{"residual", t.vec(kF32, t.n())}};
  t.program.state_inits = {t.num(0)};
  t.program.info.wire.fields = {{"value", t.vec(kF16, t.n()), {}, false, {}}};
  const auto state = [&] { return t.make(ExprKind::State, t.vec(kF32, t.n())); };
  StmtId add = t.stmt(StmtKind::AssignState, {}, t.op(ScalarOp::add, {state(), t.gradient()}));
  const ExprId index = t.call(BuiltinId::top_k, t.vec(kU32, t.sizes().const_int(1)), {state()});
  t.at(index).size = t.sizes().const_int(1);
  StmtId store = t.stmt(StmtKind::AssignIndexed, {}, t.num(0), index);
  t.at(store).is_state = true;
  t.at(store).proved_in_bounds = t.at(store).proved_unique = true;
  const ExprId wire = t.make(ExprKind::WireLiteral, {}, {state()});
  t.program.encode = Body{t.block({add, store}, wire), {}, {}};
  const std::string text = lowered(t);
  EXPECT_THAT(text, HasSubstr("scatter"));
  EXPECT_THAT(text, HasSubstr("convert"));
  EXPECT_THAT(text, Not(HasSubstr("check_")));
}

TEST(LowerLambda, ATableIsComparedWithEveryElement) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const VarId v = t.var("v", t.scalar(kF32)), best = t.var("best", t.scalar(kU32));
    const VarId levels = t.var("levels", t.vec(kF32, 4));
    const ExprId distance = t.op(
        ScalarOp::neg, {t.op(ScalarOp::abs, {t.op(ScalarOp::sub, {t.use(levels), t.use(v)})})});
    const ExprId nearest = t.call(BuiltinId::argmax, t.scalar(kU32), {distance});
    const ExprId found = t.make(ExprKind::Index, t.scalar(kF32), {t.use(levels), t.use(best)});
    t.at(found).proved_in_bounds = true;
    const ExprId body = t.block({t.let(best, nearest)}, found);
    return t.block({t.let(levels, t.table(kF32, {-1, 0, 1, 2}))},
                   t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, body)}));
  });
  EXPECT_THAT(text, HasSubstr("[f32; n, 4]"));
  EXPECT_THAT(text, HasSubstr("gather"));
}

TEST(LowerLambda, ConditionsAndLoopsRunInLanes) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const VarId v = t.var("v", t.scalar(kF32)), y = t.var("y", t.scalar(kF32), true);
    const VarId lut = t.var("lut", t.vec(kF32, t.n()));
    const ExprId found = t.make(ExprKind::Index, t.scalar(kF32), {t.use(lut), t.num(3, kU32)});
    const ExprId branch = t.if_else(t.op(ScalarOp::gt, {t.use(v), t.num(0)}),
                                    t.block({t.assign(y, found)}), t.block({}));
    const StmtId loop = t.stmt(StmtKind::While, {},
                               t.block({t.assign(y, t.op(ScalarOp::mul, {t.use(y), t.num(2)}))}),
                               t.op(ScalarOp::lt, {t.use(y), t.use(v)}));
    t.at(loop).size = t.sizes().const_int(8);
    const ExprId body =
        t.block({t.let(y, t.num(1)), t.stmt(StmtKind::Expr, {}, branch), loop}, t.use(y));
    return t.block({t.let(lut, x)},
                   t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, body)}));
  });
  EXPECT_THAT(text, HasSubstr("map.select"));
  EXPECT_THAT(text, HasSubstr("while_loop"));
  EXPECT_THAT(text, Not(HasSubstr("if_else")));
  EXPECT_THAT(text, HasSubstr("concat"));  // the array may be empty where no lane is active
}

TEST(LowerLambda, ALambdaInsideALambdaPairsElements) {
  TreeBuilder t;
  lowered_decode(t, [&](ExprId x) {
    const VarId v = t.var("v", t.scalar(kF32)), l = t.var("l", t.scalar(kF32));
    const ExprId inner_body = t.op(ScalarOp::mul, {t.use(v), t.use(l)});
    const ExprId inner = t.call(BuiltinId::map, t.vec(kF32, 3),
                                {t.table(kF32, {1, 2, 3}), t.lambda({l}, inner_body)});
    const ExprId body = t.call(BuiltinId::sum, t.scalar(kF32), {inner});
    return t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, body)});
  });
}

TEST(LowerLambda, SortsAndScansInsideRunAlongRows) {
  TreeBuilder t;
  const std::string text = lowered_decode(t, [&](ExprId x) {
    const VarId v = t.var("v", t.scalar(kF32));
    const ExprId shifted = t.op(ScalarOp::add, {t.table(kF32, {1, 2, 3}), t.use(v)});
    const ExprId sorted = t.call(BuiltinId::sort, t.vec(kF32, 3), {shifted});
    const ExprId sums = t.call(BuiltinId::cumsum, t.vec(kF32, 3), {sorted});
    const ExprId third = t.call(BuiltinId::kth_largest, t.scalar(kF32), {sums});
    t.at(third).size = t.sizes().const_int(2);
    return t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, third)});
  });
  EXPECT_THAT(text, HasSubstr("gather_along"));
}

TEST(LowerLambda, WhatHasNoLiftedFormIsALimitation) {
  TreeBuilder t;
  EXPECT_THROW(
      lowered_decode(t,
                     [&](ExprId x) {
                       const VarId v = t.var("v", t.scalar(kF32));
                       const ExprId row = t.op(ScalarOp::add, {t.table(kF32, {1, 2}), t.use(v)});
                       const ExprId spread =
                           t.call(BuiltinId::scatter, t.vec(kF32, 4), {row, t.table(kU32, {0, 3})});
                       const ExprId body = t.call(BuiltinId::sum, t.scalar(kF32), {spread});
                       return t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, body)});
                     }),
      InternalError);
}

TEST(LowerFilter, TheWireCountIsWhatNonzeroFound) {
  TreeBuilder t;
  t.program.info.name = "test";
  t.program.info.counts = {{"m", t.n()}, {"found", t.n()}};
  t.program.info.wire.counts = {{"m", t.n()}};
  const HostExprId wire_len = t.sizes().count(0, t.n()), len = t.sizes().count(1, t.n());
  t.program.info.wire.fields = {{"index", t.vec(kU32, wire_len), {}, true, t.n()},
                                {"value", t.vec(kF32, wire_len), {}, false, {}}};
  const VarId index = t.var("index", t.vec(kU32, len));
  const ExprId mask = t.op(ScalarOp::ge, {t.gradient(), t.num(1)});
  const ExprId found = t.call(BuiltinId::nonzero, t.vec(kU32, len), {mask});
  t.at(found).index = 1;
  const ExprId values = t.make(ExprKind::Index, t.vec(kF32, len), {t.gradient(), t.use(index)});
  t.at(values).proved_in_bounds = true;
  const ExprId wire = t.make(ExprKind::WireLiteral, {}, {t.use(index), values});
  t.program.encode = Body{t.block({t.let(index, found)}, wire), {}, {}};
  const ir::Program program = lower::lower(t.complete());
  EXPECT_EQ(ir::find_fault(program), std::nullopt) << ir::print(program);
  const ir::Function& encode = *program.find(ir::FunctionKind::Encode);
  const ir::Value& count = encode.values[encode.results.counts.at(0).index()];
  EXPECT_EQ(encode.ops[count.def.index()].kind, ir::OpKind::nonzero);
}

}  // namespace
}  // namespace cinch::sema
