// The builder makes sound ops of the right types; the rewriter's tools keep programs sound.
#include "compiler/ir/builder.h"

#include <gtest/gtest.h>

#include "compiler/ir/rewriter.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "runtime/core/check.h"
#include "tests/unit/compiler/ir/all_ops.h"

namespace cinch::ir {
namespace {

// A decode under construction.
struct Draft {
  Program program;
  Function function = make_function(FunctionKind::Decode);
  Builder b{program, function};
  HostExprPool& x = *program.info.exprs;

  std::string type_text(ValueId value) const { return print_type(program.info, b.type(value)); }
  ValueId vector() { return b.fill(b.constant(kF32, 1.5), vector_type(kF32, x.n())); }
  ValueId matrix() {
    return b.fill(b.constant(kF32, 2), matrix_type(kF32, x.const_int(4), x.const_int(8)));
  }
  // Closes the body and gives what the verifier says.
  std::optional<std::string> fault() {
    function.results.output = vector();
    b.yield({});
    program.functions.push_back(function);
    return find_fault(program);
  }
};

TEST(Builder, BroadcastsScalarsAndOnes) {
  Draft d;
  const ValueId column = d.b.reduce(ScalarOp::add, d.matrix(), 1);
  EXPECT_EQ(d.type_text(column), "[f32; 4, 1]");
  EXPECT_EQ(d.type_text(d.b.map(ScalarOp::div, d.matrix(), column)), "[f32; 4, 8]");
  EXPECT_EQ(d.type_text(d.b.map(ScalarOp::lt, d.b.constant(kF32, 0), d.vector())), "[bool; n]");
  EXPECT_EQ(d.type_text(d.b.map(ScalarOp::popcount, d.b.iota(d.x.n()))), "[u32; n]");
  EXPECT_THROW(d.b.map(ScalarOp::add, d.vector(), d.matrix()), InternalError);
  EXPECT_EQ(d.fault(), std::nullopt);
}

TEST(Builder, ReusesValuesThatFitAlready) {
  Draft d;
  const ValueId v = d.vector();
  EXPECT_EQ(d.b.convert(v, kF32), v);
  EXPECT_EQ(d.b.fill(v, vector_type(kF32, d.x.n())), v);
  EXPECT_EQ(d.b.reshape(v, vector_type(kF32, d.x.n())), v);
}

TEST(Builder, SharesEqualTables) {
  Draft d;
  const Table table{vector_type(kI32, d.x.const_int(2)), {1, 2}};
  d.b.const_array(table);
  d.b.const_array(table);
  EXPECT_EQ(d.program.tables.size(), 1u);
}

TEST(Builder, MakesSoundControlFlow) {
  Draft d;
  const ValueId zero = d.b.constant(kF32, 0);
  ValueIds looped = d.b.for_loop(
      d.x.const_int(0), d.x.const_int(5), {zero}, [&](ValueId i, std::span<const ValueId> carried) {
        return ValueIds{d.b.map(ScalarOp::add, carried[0], d.b.convert(i, kF32))};
      });
  ValueIds waited = d.b.while_loop(
      d.x.const_int(9), looped,
      [&](std::span<const ValueId> c) { return d.b.map(ScalarOp::gt, c[0], zero); },
      [&](std::span<const ValueId> c) { return ValueIds{d.b.map(ScalarOp::neg, c[0])}; });
  const ValueIds chosen = d.b.if_else(
      d.b.map(ScalarOp::isnan, waited[0]), [&] { return waited; }, [&] { return looped; });
  EXPECT_EQ(d.type_text(chosen[0]), "f32");
  EXPECT_EQ(d.fault(), std::nullopt);
}

TEST(Builder, MakesSoundCombiners) {
  Draft d;
  const DType types[] = {kF32, kU32};
  const CombinerId arg_max = d.b.combiner(types, [&](auto a, auto b) {
    const ValueId left = d.b.map(ScalarOp::ge, a[0], b[0]);
    return ValueIds{d.b.select(left, a[0], b[0]), d.b.select(left, a[1], b[1])};
  });
  const ValueIds found =
      d.b.reduce(ValueIds{d.vector(), d.b.iota(d.x.n())},
                 ValueIds{d.b.identity(ScalarOp::max, kF32), d.b.constant_int(kU32, 0)}, arg_max);
  EXPECT_EQ(d.type_text(found[1]), "u32");
  EXPECT_EQ(d.fault(), std::nullopt);
}

TEST(Builder, IdentitiesAreTheFarEnds) {
  Draft d;
  const auto bits = [&](ScalarOp op, DType dtype) {
    return defining_op(d.function, d.b.identity(op, dtype)).attrs.bits;
  };
  EXPECT_EQ(bits(ScalarOp::min, kI8), 127u);
  EXPECT_EQ(static_cast<std::int64_t>(bits(ScalarOp::max, kI8)), -128);
  EXPECT_EQ(bits(ScalarOp::max, kU32), 0u);
  EXPECT_EQ(bits(ScalarOp::bit_and, kU8), 255u);
  EXPECT_EQ(bits(ScalarOp::bit_and, kBool), 1u);
  EXPECT_EQ(bits(ScalarOp::mul, kI64), 1u);
}

TEST(Rewriter, UsesAndReplacement) {
  Draft d;
  const ValueId v = d.vector();
  const ValueId doubled = d.b.map(ScalarOp::add, v, v);
  const ValueId w = d.b.map(ScalarOp::neg, v);
  d.function.results.output = doubled;
  const Uses uses(d.function);
  EXPECT_EQ(uses.of(v).size(), 3u);
  EXPECT_TRUE(uses.is_result(doubled));
  EXPECT_FALSE(uses.has_uses(w));
  UseLists lists(d.function);
  lists.replace(doubled, v);
  lists.replace(v, w);
  EXPECT_EQ(d.function.results.output, w);  // the uses that v had taken over go on
  EXPECT_EQ(defining_op(d.function, doubled).operands, (std::vector{w, w}));
}

TEST(Rewriter, UseListsKnowOpsAddedSince) {
  Draft d;
  const ValueId v = d.vector();
  UseLists lists(d.function);
  const ValueId w = d.b.map(ScalarOp::neg, v);
  const ValueId sum = d.b.map(ScalarOp::add, v, w);
  lists.replace(w, v);
  EXPECT_EQ(defining_op(d.function, sum).operands, (std::vector{v, v}));
}

TEST(Rewriter, ClonesAreApart) {
  rt::Result<Program> program = parse(kAllOps);
  ASSERT_TRUE(program.has_value());
  Function& encode = program->functions[0];
  // Every op of the body once more, in front of its yield.
  const std::vector<OpId> ops = encode.regions[encode.body.index()].ops;
  encode.regions[encode.body.index()].ops.pop_back();
  ValueMap map;
  for (std::size_t i = 0; i + 1 < ops.size(); ++i) clone_op(encode, ops[i], encode.body, map);
  encode.regions[encode.body.index()].ops.push_back(ops.back());
  EXPECT_EQ(find_fault(*program), std::nullopt);
}

TEST(Rewriter, InlinesARegion) {
  Draft d;
  const ValueId one = d.b.constant(kF32, 1);
  const ValueIds looped = d.b.for_loop(
      d.x.const_int(0), d.x.const_int(1), {one}, [&](ValueId, std::span<const ValueId> carried) {
        return ValueIds{d.b.map(ScalarOp::add, carried[0], carried[0])};
      });
  const RegionId body = defining_op(d.function, looped[0]).regions[0];
  const auto values =
      inline_region(d.function, body, {d.b.constant_int(kI64, 0), one}, d.function.body);
  EXPECT_EQ(defining_op(d.function, values[0]).operands, (ValueIds{one, one}));
  EXPECT_EQ(d.fault(), std::nullopt);
}

}  // namespace
}  // namespace cinch::ir
