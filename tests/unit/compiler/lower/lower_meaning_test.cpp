// Results of lowered programs in the interpreter: small trees of a decode whose payload is a
// vector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "compiler/interp/interp.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/lower.h"
#include "tests/unit/compiler/lower/tree_builder.h"

namespace cinch::sema {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

using MakeBody = std::function<ExprId(TreeBuilder&, ExprId)>;

rt::Result<interp::Outputs> run(const MakeBody& make_body, const std::vector<float>& values) {
  TreeBuilder t;
  const VarId w = t.wire_of_values();
  const ExprId root = make_body(t, t.value_field(w));
  t.program.decode = Body{root, w, {}};
  const ir::Program program = lower::lower(t.complete());
  EXPECT_EQ(ir::find_fault(program), std::nullopt) << ir::print(program);
  interp::Inputs inputs;
  inputs.rows = static_cast<std::int64_t>(values.size());
  inputs.fields = {interp::from_floats(values)};
  return interp::run(program, ir::FunctionKind::Decode, inputs);
}

std::vector<float> decoded(const MakeBody& make_body, const std::vector<float>& values) {
  const auto out = run(make_body, values);
  if (!out) ADD_FAILURE() << out.error().message;
  return out ? interp::to_floats(*out->output) : std::vector<float>{};
}

// A reduction's scalar, as seen in every element; -1 where there are none.
float reduced(BuiltinId id, const std::vector<float>& values, DType dtype = kF32) {
  const auto out = decoded(
      [&](TreeBuilder& t, ExprId x) {
        const ExprId r = t.call(id, t.scalar(dtype), {x});
        const ExprId as_float = t.make(ExprKind::Convert, t.scalar(kF32), {r});
        return t.call(BuiltinId::fill, t.vec(kF32, t.n()), {as_float});
      },
      values);
  return out.empty() ? -1 : out[0];
}

// The same over elements that a mask leaves out all.
float reduced_of_nothing(BuiltinId id) {
  return decoded(
      [&](TreeBuilder& t, ExprId x) {
        const ExprId none = t.op(ScalarOp::lt, {x, t.num(-1e30)});
        const ExprId r = t.call(id, t.scalar(kF32), {x, none});
        return t.call(BuiltinId::fill, t.vec(kF32, t.n()), {r});
      },
      {3, 4})[0];
}

TEST(LoweredReductions, HaveTheirPlainMeaning) {
  const std::vector<float> x{3, -4, 0, 1};
  EXPECT_EQ(reduced(BuiltinId::sum, x), 0);
  EXPECT_EQ(reduced(BuiltinId::mean, x), 0);
  EXPECT_EQ(reduced(BuiltinId::min, x), -4);
  EXPECT_EQ(reduced(BuiltinId::max, x), 3);
  EXPECT_EQ(reduced(BuiltinId::norm1, x), 8);
  EXPECT_EQ(reduced(BuiltinId::norm2, x), std::sqrt(26.0f));
  EXPECT_EQ(reduced(BuiltinId::norm_inf, x), 4);
  EXPECT_NEAR(reduced(BuiltinId::std, x), std::sqrt(26.0f / 4), 1e-6);
}

TEST(LoweredReductions, OfNothingAreWhatTheLanguageSays) {
  for (BuiltinId id : {BuiltinId::sum, BuiltinId::mean, BuiltinId::std, BuiltinId::norm1,
                       BuiltinId::norm2, BuiltinId::norm_inf}) {
    EXPECT_EQ(reduced_of_nothing(id), 0) << static_cast<int>(id);
  }
  EXPECT_EQ(reduced_of_nothing(BuiltinId::min), kInf);
  EXPECT_EQ(reduced_of_nothing(BuiltinId::max), -kInf);
}

TEST(LoweredReductions, StdOfLargeEqualValuesIsZero) {
  EXPECT_EQ(reduced(BuiltinId::std, std::vector<float>(3000, 1e30f)), 0);
  EXPECT_NEAR(reduced(BuiltinId::std, {1e8f, 1e8f + 16, 1e8f + 32}), 13.06f, 0.01f);
}

TEST(LoweredReductions, ArgmaxTakesTheLowerIndexAndIgnoresNan) {
  EXPECT_EQ(reduced(BuiltinId::argmax, {1, 5, 5, 2}, kU32), 1);
  EXPECT_EQ(reduced(BuiltinId::argmax, {kNan, -1, kNan, 7, 7}, kU32), 3);
  EXPECT_EQ(reduced(BuiltinId::argmax, {-0.0f, 0.0f}, kU32), 0);
  EXPECT_EQ(reduced(BuiltinId::argmax, {kNan, -kInf}, kU32), 1);
  EXPECT_EQ(reduced(BuiltinId::argmax, {kNan, kNan}, kU32), 0);
  std::vector<float> many(5000, 1);
  many[70] = many[4000] = 2;
  EXPECT_EQ(reduced(BuiltinId::argmax, many, kU32), 70);
}

TEST(LoweredReductions, AlongAnAxisKeepItWithSizeOne) {
  const auto out = decoded(
      [](TreeBuilder& t, ExprId x) {
        const HostExprId two = t.sizes().const_int(2), rows = t.sizes().ceil_div(t.n(), two);
        const ExprId m = t.call(BuiltinId::chunk, t.mat(kF32, rows, two), {x});
        const ExprId top = t.call(BuiltinId::max, t.mat(kF32, rows, t.sizes().const_int(1)), {m});
        t.at(top).axis = 1;
        const ExprId scaled = t.op(ScalarOp::div, {m, top});
        t.at(scaled).type = t.mat(kF32, rows, two);
        return t.call(BuiltinId::unchunk, t.vec(kF32, t.n()), {scaled});
      },
      {1, 2, 8, 4, 5});
  EXPECT_THAT(out, ElementsAre(0.5f, 1, 1, 0.5f, 1));
}

TEST(LoweredControl, AWhileLoopStopsAtItsConditionOrItsBound) {
  const auto halve_until = [](double limit, std::int64_t at_most) {
    return decoded(
        [&](TreeBuilder& t, ExprId x) {
          const VarId tau = t.var("tau", t.scalar(kF32), true);
          const ExprId halved = t.op(ScalarOp::mul, {t.use(tau), t.num(0.5)});
          const StmtId loop = t.stmt(StmtKind::While, {}, t.block({t.assign(tau, halved)}),
                                     t.op(ScalarOp::gt, {t.use(tau), t.num(limit)}));
          t.at(loop).size = t.sizes().const_int(at_most);
          const ExprId top = t.call(BuiltinId::max, t.scalar(kF32), {x});
          return t.block({t.let(tau, top), loop},
                         t.call(BuiltinId::fill, t.vec(kF32, t.n()), {t.use(tau)}));
        },
        {64})[0];
  };
  EXPECT_EQ(halve_until(5, 20), 4);
  EXPECT_EQ(halve_until(5, 2), 16);
  EXPECT_EQ(halve_until(5, 0), 64);
}

// |v| levels[argmax(-abs(levels - v))]
ExprId nearest_level(TreeBuilder& t, ExprId x) {
  const VarId v = t.var("v", t.scalar(kF32)), levels = t.var("levels", t.vec(kF32, 4));
  const ExprId gaps = t.op(ScalarOp::abs, {t.op(ScalarOp::sub, {t.use(levels), t.use(v)})});
  const ExprId nearest = t.call(BuiltinId::argmax, t.scalar(kU32), {t.op(ScalarOp::neg, {gaps})});
  const ExprId found = t.make(ExprKind::Index, t.scalar(kF32), {t.use(levels), nearest});
  return t.block({t.let(levels, t.table(kF32, {-1, 0, 1, 2}))},
                 t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, found)}));
}

TEST(LoweredLambda, LooksUpACodebookForEveryElement) {
  EXPECT_THAT(decoded(nearest_level, {-7, 0.4f, 0.6f, 1.5f, 9}), ElementsAre(-1, 0, 1, 1, 2));
}

// |v| { let mut y = 1; while y < v, at_most: 8 { y = y * 2 }; if y > 4 { y = -y }; y }
ExprId power_above(TreeBuilder& t, ExprId x) {
  const VarId v = t.var("v", t.scalar(kF32)), y = t.var("y", t.scalar(kF32), true);
  const StmtId loop =
      t.stmt(StmtKind::While, {}, t.block({t.assign(y, t.op(ScalarOp::mul, {t.use(y), t.num(2)}))}),
             t.op(ScalarOp::lt, {t.use(y), t.use(v)}));
  t.at(loop).size = t.sizes().const_int(8);
  const ExprId flip =
      t.if_else(t.op(ScalarOp::gt, {t.use(y), t.num(4)}),
                t.block({t.assign(y, t.op(ScalarOp::neg, {t.use(y)}))}), t.block({}));
  t.at(flip).args[2] = {};
  const ExprId body =
      t.block({t.let(y, t.num(1)), loop, t.stmt(StmtKind::Expr, {}, flip)}, t.use(y));
  return t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, body)});
}

TEST(LoweredLambda, EveryLaneLoopsAsLongAsItMust) {
  EXPECT_THAT(decoded(power_above, {0, 3, 5, 1000, 2}), ElementsAre(1, 4, -8, -256, 2));
}

// |v| if v > 0 { table[v as i32] } else { 0 }
ExprId guarded_lookup(TreeBuilder& t, ExprId x) {
  const VarId v = t.var("v", t.scalar(kF32));
  const ExprId index = t.make(ExprKind::Convert, t.scalar(kI32), {t.use(v)});
  const ExprId found =
      t.make(ExprKind::Index, t.scalar(kF32), {t.table(kF32, {10, 11, 12}), index});
  const ExprId body = t.if_else(t.op(ScalarOp::ge, {t.use(v), t.num(0)}), found, t.num(0));
  return t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, body)});
}

TEST(LoweredLambda, AnIndexIsCheckedOnlyWhereItIsReached) {
  EXPECT_THAT(decoded(guarded_lookup, {2, -5, 0}), ElementsAre(12, 0, 10));
  const auto out = run(guarded_lookup, {1, 3});
  ASSERT_FALSE(out.has_value());
  EXPECT_EQ(out.error().kind, rt::ErrorKind::CheckFailed);
}

TEST(LoweredAccess, ANegativeIndexIsOutOfRange) {
  const auto lookup = [](double index) {
    return run(
        [&](TreeBuilder& t, ExprId x) {
          const ExprId found = t.make(ExprKind::Index, t.scalar(kF32), {x, t.num(index, kI32)});
          return t.call(BuiltinId::fill, t.vec(kF32, t.n()), {found});
        },
        {7, 8});
  };
  EXPECT_TRUE(lookup(1).has_value());
  EXPECT_FALSE(lookup(2).has_value());
  EXPECT_FALSE(lookup(-1).has_value());
}

// map(x, |v| sum(map([1, 2, 3], |l| v * l)))
TEST(LoweredLambda, ALambdaInsideALambda) {
  const auto out = decoded(
      [](TreeBuilder& t, ExprId x) {
        const VarId v = t.var("v", t.scalar(kF32)), l = t.var("l", t.scalar(kF32));
        const ExprId product = t.op(ScalarOp::mul, {t.use(v), t.use(l)});
        const ExprId inner = t.call(BuiltinId::map, t.vec(kF32, 3),
                                    {t.table(kF32, {1, 2, 3}), t.lambda({l}, product)});
        const ExprId body = t.call(BuiltinId::sum, t.scalar(kF32), {inner});
        return t.call(BuiltinId::map, t.vec(kF32, t.n()), {x, t.lambda({v}, body)});
      },
      {1, -2});
  EXPECT_THAT(out, ElementsAre(6, -12));
}

TEST(LoweredSort, SortByKeyMovesValuesInTheOrderOfKeys) {
  const auto out = decoded(
      [](TreeBuilder& t, ExprId x) {
        const ExprId magnitude = t.op(ScalarOp::abs, {x});
        const ExprId sorted = t.call(BuiltinId::sort_by_key, t.vec(kF32, t.n()), {magnitude, x});
        t.at(sorted).descending = true;
        return sorted;
      },
      {1, -3, 2, 3});
  EXPECT_THAT(out, ElementsAre(-3, 3, 2, 1));
}

TEST(LoweredScan, ALambdaScansInTheLanguagesOrder) {
  const auto out = decoded(
      [](TreeBuilder& t, ExprId x) {
        const VarId a = t.var("a", t.scalar(kF32)), b = t.var("b", t.scalar(kF32));
        const ExprId larger = t.op(ScalarOp::gt, {t.use(b), t.use(a)});
        const ExprId body = t.if_else(larger, t.use(b), t.use(a));
        const ExprId scan =
            t.call(BuiltinId::scan, t.vec(kF32, t.n()), {x, t.num(0), t.lambda({a, b}, body)});
        t.at(scan).exclusive = true;
        return scan;
      },
      {-1, 4, 2, 6});
  EXPECT_THAT(out, ElementsAre(0, 0, 4, 4));
}

TEST(LoweredMove, ScatterStoresIntoZeros) {
  const auto scattered = [](std::vector<double> places) {
    return run(
        [&](TreeBuilder& t, ExprId x) {
          const ExprId at = t.table(kU32, places);
          const ExprId two = t.make(ExprKind::Slice, t.vec(kF32, 2), {x});
          t.at(two).size = t.sizes().const_int(0);
          t.at(two).size2 = t.sizes().const_int(2);
          return t.call(BuiltinId::scatter, t.vec(kF32, t.n()), {two, at});
        },
        {5, 6, 7});
  };
  EXPECT_THAT(interp::to_floats(*scattered({2, 0})->output), ElementsAre(6, 0, 5));
  EXPECT_FALSE(scattered({2, 2}).has_value());
  EXPECT_FALSE(scattered({0, 3}).has_value());
}

}  // namespace
}  // namespace cinch::sema
