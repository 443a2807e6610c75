// One broken program for each rule of the verifier.
#include "compiler/ir/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/builder.h"
#include "compiler/ir/text/text.h"
#include "runtime/core/check.h"
#include "tests/unit/compiler/ir/all_ops.h"

namespace cinch::ir {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHead = R"(name=p
params {name=ratio, dtype=f32, default=1}
sizes {name=k, value=min(10, n)}
counts {name=m, bound=n}
wire { counts {} fields {name=index, type=[u32; m], ascending} }
externs {name=f, params=(f32, u32), result=f32, work=1, source="text"}
table 0: [f32; 2] = (1, 2)
)";

Program parsed(const std::string& text) {
  rt::Result<Program> program = parse(text);
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

// A decode whose body is `ops`, on vectors of n; it hands out zeros.
std::string fault_of(const std::string& ops, const std::string& head = std::string(kHead)) {
  const Program program = parsed(head + R"(decode {
  %0: f32 = const_scalar {value=0}
  %1: [f32; n] = fill %0
  %2: u32 = const_scalar {value=0}
  %3: [u32; n] = iota
  %4: bool = const_scalar {value=1}
  %5: [f32; 4, 8] = fill %0
  %6: [bool; n] = fill %4
  %7: i64 = const_scalar {value=0}
)" + ops + "\n  yield\n  results output(%1)\n}\n");
  return find_fault(program).value_or("sound");
}

struct Case {
  const char* ops;
  const char* fault;
};

class TypeRules : public testing::TestWithParam<Case> {};
TEST_P(TypeRules, AreHeld) {
  EXPECT_THAT(fault_of(GetParam().ops), HasSubstr(GetParam().fault));
}

INSTANTIATE_TEST_SUITE_P(
    Leaves, TypeRules,
    testing::Values(Case{"", "sound"},
                    Case{"%9: u3 = const_scalar {value=8}", "does not fit its type"},
                    Case{"%9: i3 = const_scalar {value=-5}", "does not fit its type"},
                    Case{"%9: [f32; n] = const_scalar {value=8}", "rank"},
                    Case{"%9: [f32; 3] = const_array {index=0}",
                         "const_array: the result is [f32; 3]"},
                    Case{"%9: [f32; 2] = const_array {index=1}", "there is no table 1"},
                    Case{"%9: f32 = param {index=3}", "there is no parameter 3"},
                    Case{"%9: f64 = param {index=0}", "param: the result is f64, not f32"},
                    Case{"%9: [f32; n] = gradient", "decode sees no gradient"},
                    Case{"%9: [f32; n] = state {index=0}", "decode sees no state"},
                    Case{"%9: [u32; n] = field {index=0}", "field: the result"},
                    Case{"%9: u32 = count_value {index=7}", "there is no count 7"},
                    Case{"%9: [f32; n] = iota", "not u32"},
                    Case{"%9: [f32; n] = fill %2", "the element types differ"},
                    Case{"%9: [f32; 8] = fill %5", "does not broadcast"}));

INSTANTIATE_TEST_SUITE_P(
    Elements, TypeRules,
    testing::Values(
        Case{"%9: [f32; n] = call_extern %1, %3 {index=0}", "sound"},
        Case{"%9: [f32; n] = call_extern %1, %3 {index=1}", "there is no C++ function 1"},
        Case{"%9: [f32; n] = call_extern %1 {index=0}", "1 operands"},
        Case{"%9: [f32; n] = call_extern %1, %1 {index=0}", "operand 1 is not u32"},
        Case{"%9: [u32; n] = call_extern %1, %3 {index=0}", "the result is [u32; n]"},
        Case{"%9: [f32; n] = call_extern %5, %3 {index=0}", "operands do not meet"},
        Case{"%9: [f32; n] = map.add %1, %2", "operands differ in type (f32, u32)"},
        Case{"%9: [f32; n] = map.add %1", "1 operands"},
        Case{"%9: [f32; n] = map.add %1, %5", "operands do not meet ([f32; n], [f32; 4, 8])"},
        Case{"%9: [f32; n] = map.lt %1, %1", "the result is [f32; n], not [bool; n]"},
        Case{"%9: [f32; n] = map.select %1, %1, %1", "the condition is not bool"},
        Case{"%9: [f32; n] = map.shl %1, %1", "takes integers"},
        Case{"%9: [u32; n] = map.sqrt %3", "takes floats"},
        Case{"%9: bool = map.add %4, %4", "not done in bool"},
        Case{"%9: [f16; n] = convert %1 %10: [f16; n] = map.add %9, %9", "not done in f16"},
        Case{"%9: [f32; k] = convert %1", "convert: the result"},
        Case{"%9: [f64; n] = bitcast %1", "the widths differ"},
        Case{"%9: [u32; n] = stochastic_round %3 {site=0}", "not f32 or f64"},
        Case{"%9: [f32; n] = random %1 {site=0}", "the iteration is not an integer scalar"},
        Case{"%9: [u32; n] = random {site=0}", "the result is not f32"}));

INSTANTIATE_TEST_SUITE_P(
    Access, TypeRules,
    testing::Values(
        Case{"%9: [f32; n] = gather %1, %1", "indices are not integers"},
        Case{"%9: [f32; k] = gather %1, %3", "gather: the result"},
        Case{"%9: [f32; n] = gather_along %1, %3 {axis=1}", "rank"},
        Case{"%9: [f32; 8] = slice %5 {begin=0}", "slice: the result"},
        Case{"%9: [f32; n] = concat %1, %1", "concat: the result is [f32; n], not [f32; n + n]"},
        Case{"%9: [f32; 8, 8] = concat %5, %5 {axis=1}",
             "concat: the result is [f32; 8, 8], not [f32; 4, 16]"},
        Case{"%9: [f32; 8, 8] = concat %5, %5 {axis=0}", "not along rows"},
        Case{"%9: [f32; 8, 8] = concat %5, %5", "rank"},
        Case{"%9: [f32; 31] = reshape %5", "differ in size"},
        Case{"%9: [f32; 4, 8] = transpose %5", "transpose: the result"},
        Case{"%9: [f32; 4, 8] = chunk %1", "chunk: the result"},
        Case{"%9: [f32; 4] = unchunk %1", "rank"},
        Case{"%9: [u8; n] = pack %3 {width=7}", "pack: the result"},
        Case{"%9: [u8; n] = pack %3 {width=65}", "width outside"},
        Case{"%9: [u3; n] = unpack %3 {width=3}", "not of bytes"},
        Case{"%9: [u8; ceil_div(8 * n, 8)] = pack %3 {width=8} %10: [u7; 1] = unpack %9 {width=8}",
             "does not hold"},
        Case{"%9: [f32; n] = scatter %1, %3, %0", "the values"},
        Case{"%9: [f32; n] = scatter %1, %1, %1", "indices are not integers"},
        Case{"%9: [f32; k] = scatter_add %3, %0", "the values"},
        Case{"%9: [f32; k] = scatter_reduce.add %3, %1", "neither min nor max"},
        Case{"%9: [f32; k] = scatter_reduce.min %3, %0", "the values"},
        Case{"%9: [u32; 8] = histogram %1", "not u32"},
        Case{"%9: [u32; 8] = histogram %3, %1", "the mask"}));

INSTANTIATE_TEST_SUITE_P(
    Reductions, TypeRules,
    testing::Values(
        Case{"%9: f32 = reduce %1, %2 {axis=all, combiner=add}", "an init is not a scalar"},
        Case{"%9: f32 = reduce %1, %0, %3 {axis=all, combiner=add}", "the mask"},
        Case{"%9: f32 = reduce %1, %0 {axis=all, combiner=sub}", "not associative"},
        Case{"%9: [f32; 4] = reduce %5, %0 {axis=1, combiner=add}", "the result"},
        Case{"%9: [f32; 1] = reduce %1, %0 {axis=1, combiner=add}", "no such axis"},
        Case{"%9: f32 = reduce %0, %0 {axis=all, combiner=add}", "scalars"},
        Case{"%9: f32 = reduce %1, %0 {axis=all, combiner=bit_and}", "does not take f32"},
        Case{"%9: f32, %10: u32 = reduce %1, %3, %0, %2 {axis=all, combiner=add}", "one value"},
        Case{"%9: f32 = reduce %1, %0 {axis=all, combiner=region} (%10: f32) { yield %10 }",
             "two args for each value"},
        Case{"%9: f32 = reduce %1, %0 {axis=all, combiner=region} (%10: f32, %11: f32) { yield }",
             "does not yield"},
        Case{"%9: f32 = reduce %1, %0 {axis=all, combiner=region} (%10: f32, %11: f32) { "
             "check %4 {text=\"\"} yield %10 }",
             "a check inside a combiner"},
        Case{"%9: f32 = reduce %1, %0 {axis=all, combiner=region} (%10: f32, %11: f32) { "
             "%12: [f32; n] = fill %10 yield %10 }",
             "an array inside a combiner"},
        Case{"%9: [f32; k] = scan %1, %0 {axis=all, combiner=add}", "the result"}));

INSTANTIATE_TEST_SUITE_P(
    SelectionAndMatrix, TypeRules,
    testing::Values(
        Case{"%9: [u32; m], %10: u32 = nonzero %1 {index=0}", "the mask is not bool"},
        Case{"%9: [u32; n], %10: u32 = nonzero %6 {index=0}", "nonzero: the result"},
        Case{"%9: [u32; m] = nonzero %6 {index=0}", "1 results"},
        Case{"%9: [u32; 3] = top_k %1 {size=k, axis=all}", "top_k: the result"},
        Case{"%9: [u32; 4, 2] = top_k %5 {size=2, axis=all}", "axis all takes a vector"},
        Case{"%9: [u32; 2, 8] = top_k %5 {size=2, axis=0}", "not along columns"},
        Case{"%9: u32 = kth_largest %1 {size=k, axis=all}", "kth_largest: the result"},
        Case{"%9: [f32; n] = argsort %1 {axis=all}", "argsort: the result"},
        Case{"%9: [f32; 4, 4] = matmul %5, %5", "the inner sizes differ"},
        Case{"%9: [f32; n] = orthonormalize %1", "rank"},
        Case{"%9: [f32; 4, 6] = fill %0 %10: [f32; 4, 6] = hadamard %9", "not a power of two"},
        Case{"check %1 {text=\"\"}", "not a bool scalar"},
        Case{"check_index %1 {below=n, text=\"\"}", "not integers"},
        Case{"check_unique %1 {cells=n, text=\"\"}", "not integers"},
        Case{"check_host {holds=n, text=\"\"}", "not bool"},
        Case{"%9: [f32; n] = all_reduce %1 {combiner=add}", "outside sync"}));

INSTANTIATE_TEST_SUITE_P(
    Control, TypeRules,
    testing::Values(
        Case{"%9: f32 = if_else %0 () { yield %0 } () { yield %0 }", "not a bool scalar"},
        Case{"%9: f32 = if_else %4 () { yield %0 } () { yield %2 }", "u32 is not f32"},
        Case{"%9: f32 = if_else %4 () { yield %0 } () { yield }", "wrong number"},
        Case{"%9: f32 = if_else %4 () { yield %0 }", "1 regions"},
        Case{"%9: f32 = for_loop %0 {begin=0, end=3} (%10: f32) { yield %10 }", "loop variable"},
        Case{"%9: f32 = for_loop %0 {begin=0, end=3} (%10: i64, %11: f32) { yield %10 }",
             "i64 is not f32"},
        Case{"%9: u32 = for_loop %0 {begin=0, end=3} (%10: i64, %11: f32) { yield %11 }",
             "u32 is not f32"},
        Case{"for_loop {begin=0.5f, end=3} (%10: i64) { yield }", "not an integer"},
        Case{
            "%9: f32 = while_loop %0 {at_most=3} (%10: f32) { yield %10 } (%11: f32) { yield %11 }",
            "does not yield a bool"},
        Case{"for_loop {begin=0, end=3} (%10: i64) { %11: f32 = const_scalar {value=1} }",
             "a yield ends a region"}));

TEST(Verifier, SizesAgreeAsPolynomials) {
  EXPECT_EQ(fault_of("%9: [f32; (n + 1) * 2] = fill %0  %10: [f32; 2 * n + 2] = fill %0 "
                     "%11: [f32; 2 * n + 2] = map.add %9, %10"),
            "sound");
}

// Structure: programs that no text can say.
class Structure : public testing::Test {
 protected:
  Program program = parsed(std::string(kAllOps));
  Function& encode = program.functions[0];
  void expect_fault(const char* fault) {
    EXPECT_THAT(find_fault(program).value_or("sound"), HasSubstr(fault));
  }
  Op& op(OpKind kind) {
    for (Op& each : encode.ops) {
      if (each.kind == kind) return each;
    }
    throw std::runtime_error("no such op");
  }
};

TEST_F(Structure, OperandsExist) {
  op(OpKind::gather).operands[0] = ValueId(99999);
  expect_fault("an operand that does not exist");
}
TEST_F(Structure, OperandsAreDefinedBefore) {
  std::vector<OpId>& ops = encode.regions[encode.body.index()].ops;
  std::swap(ops[3], ops[4]);
  expect_fault("not defined before its use");
}
TEST_F(Structure, ValuesOfARegionStayInside) {
  const Op& branch = op(OpKind::if_else);
  const OpId inner = encode.regions[branch.regions[0].index()].ops[0];
  op(OpKind::for_loop).operands[0] = encode.ops[inner.index()].results[0];
  expect_fault("not defined before its use");
}
TEST_F(Structure, ResultsNameTheirOp) {
  encode.values[op(OpKind::gather).results[0].index()].def = OpId(0);
  expect_fault("does not name its op");
}
TEST_F(Structure, AnOpStandsOnce) {
  std::vector<OpId>& ops = encode.regions[encode.body.index()].ops;
  ops.insert(ops.begin() + 4, ops[3]);
  expect_fault("two places");
}
TEST_F(Structure, ARegionIsHeldOnce) {
  Op& branch = op(OpKind::if_else);
  branch.regions[1] = branch.regions[0];
  expect_fault("held by two ops");
}
TEST_F(Structure, OpsExist) {
  encode.regions[encode.body.index()].ops[2] = OpId(99999);
  expect_fault("an op that does not exist");
}
TEST_F(Structure, CombinersExist) {
  op(OpKind::scan).attrs.combiner = CombinerId(99);
  expect_fault("a combiner that does not exist");
}
TEST_F(Structure, SizesExist) {
  op(OpKind::top_k).attrs.size = HostExprId(99999);
  expect_fault("does not exist");
}
TEST_F(Structure, AxesAreKnown) {
  op(OpKind::scan).attrs.axis = 2;
  expect_fault("axis is not all, 0 or 1");
}
TEST_F(Structure, EveryFieldHasAValue) {
  encode.results.fields.pop_back();
  expect_fault("not one value for each field");
}
TEST_F(Structure, EveryCountHasAValue) {
  encode.results.counts.clear();
  expect_fault("not one value for each count");
}
TEST_F(Structure, EveryStateHasAValue) {
  encode.results.states.pop_back();
  expect_fault("not one value for each state");
}
TEST_F(Structure, FieldsHaveTheirType) {
  std::swap(encode.results.fields[0], encode.results.fields[1]);
  expect_fault("field index is");
}
TEST_F(Structure, DecodeHasAnOutput) {
  program.functions[1].results.output = {};
  expect_fault("the output is missing");
}
TEST_F(Structure, OneFunctionOfAKind) {
  program.functions.push_back(program.functions[1]);
  expect_fault("two functions of one kind");
}
TEST_F(Structure, EveryStateHasAnInit) {
  program.state_inits.pop_back();
  expect_fault("not one initial value");
}
TEST_F(Structure, InitsHaveTheirType) {
  std::swap(program.state_inits[0], program.state_inits[1]);
  expect_fault("the initial value of state velocity");
}
TEST_F(Structure, ThrowsABugWithTheProgram) {
  program.state_inits.clear();
  try {
    verify(program, "simplify");
    FAIL() << "no fault";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.kind(), InternalErrorKind::Bug);
    EXPECT_EQ(error.stage(), "simplify");
    EXPECT_THAT(error.program(), HasSubstr("name=\"all\""));
  }
}

}  // namespace
}  // namespace cinch::ir
