// What the analysis finds, and that what it says holds for numbers tried.
#include "codegen/kir/value_ranges.h"

#include <gtest/gtest.h>

#include <limits>

#include "codegen/kir/builder.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Element section over a vector x of f32 and a byte of each element.
class Ranges : public ::testing::Test {
 protected:
  Ranges() : b(program, "sweep", GroupKind::Tile) {
    HostExprPool& pool = *program.info.exprs;
    const auto add = [&](const char* name, DType dtype) {
      return add_workspace(program, name, dtype, pool.n());
    };
    const BufferIndex in = add("in", kF32), bytes = add("bytes", kU8), words = add("words", kU32);
    b.set_extent(pool.n());
    const ValueId base = b.group_base();
    b.elements();
    x = b.load_linear(in, base);
    byte = b.load_linear(bytes, base);
    word = b.load_linear(words, base);
  }

  NumberRange of(ValueId value) {
    b.finish();
    const Kernel& kernel = program.kernels.at(0);
    std::vector<const Instr*> definitions(kernel.values.size());
    for (const Section& section : kernel.sections) {
      for (const Instr& instr : section.instrs) {
        for (const ValueId result : instr.results) definitions[result.index()] = &instr;
      }
    }
    return ValueRanges(program, kernel, definitions).of(value);
  }
  void expect(ValueId value, double low, double high, bool may_be_nan = false) {
    const NumberRange range = of(value);
    EXPECT_EQ(range.low, low);
    EXPECT_EQ(range.high, high);
    EXPECT_EQ(range.may_be_nan, may_be_nan);
  }
  ValueId clamp(ValueId x, float low, float high) {
    return b.scalar(ScalarOp::clamp, {x, b.const_f32(low), b.const_f32(high)});
  }

  KernelProgram program;
  KernelBuilder b;
  ValueId x, byte, word;
};

TEST_F(Ranges, LoadedFloatsMayBeAnything) {
  expect(x, -kInf, kInf, true);
}
TEST_F(Ranges, MagnitudesMayBeNaN) {
  expect(b.scalar(ScalarOp::abs, {x}), 0, kInf, true);
}
TEST_F(Ranges, ClampsTakeNaNToTheirLowerEnd) {
  expect(clamp(x, -3, 7), -3, 7);
}
TEST_F(Ranges, ABoundLeavesTheOtherSideOpen) {
  expect(b.max(x, b.const_f32(-3)), -3, kInf);
}
TEST_F(Ranges, TheSmallerOfNaNAndANumberIsTheNumber) {
  // x may be NaN, so that the bound itself is met; below it x may be anything.
  expect(b.min(x, b.const_f32(5)), -kInf, 5);
}
TEST_F(Ranges, ArithmeticKeepsEnds) {
  expect(b.sub(b.mul(clamp(x, -1, 2), b.const_f32(-3)), b.const_f32(1)), -7, 2);
}
TEST_F(Ranges, SumsRoundAsTheTypeDoes) {
  expect(b.add(clamp(x, 0, 1), b.const_f32(0x1p24f)), 0x1p24, 0x1p24);
}
TEST_F(Ranges, InfinitiesOfBothSignsMakeAnythingOfASum) {
  expect(b.add(b.max(x, b.const_f32(-1)), b.const_f32(1)), -kInf, kInf, true);
}
TEST_F(Ranges, SumsOfWhatIsNotNegativeAreNotNegative) {
  expect(b.add(b.max(x, b.const_f32(0)), b.const_f32(1)), 1, kInf);
}
TEST_F(Ranges, InfinityTimesZeroMakesNaN) {
  const ValueId magnitude = b.max(x, b.const_f32(0));
  expect(b.mul(magnitude, clamp(x, 0, 1)), 0, kInf, true);
}
TEST_F(Ranges, FloorsAndSignsMoveEnds) {
  const ValueId whole = b.scalar(ScalarOp::floor, {clamp(x, 0.5f, 2.5f)});
  expect(b.scalar(ScalarOp::neg, {whole}), -2, 0);
}
TEST_F(Ranges, ABoundedMagnitudeIsBoundedOnBothSides) {
  const ValueId scaled = b.mul(b.scalar(ScalarOp::abs, {x}), b.const_f32(3));
  expect(b.min(b.scalar(ScalarOp::floor, {scaled}), b.const_f32(127)), 0, 127);
}
TEST_F(Ranges, FiniteNumbersMayOverflowButGiveNoNaN) {
  const ValueId finite = clamp(x, -3e38f, 3e38f);
  expect(b.add(finite, finite), -kInf, kInf, false);
}
TEST_F(Ranges, ParametersKeepToTheirRange) {
  program.info.params.push_back(
      {.name = "tau", .dtype = kF32, .range = rt::ParamRange{0.0, 2.0, false, true}});
  expect(b.mul(b.param(0), b.const_f32(3)), 0, 6);
}
TEST_F(Ranges, OpenSidesOfParametersAreFinite) {
  program.info.params.push_back(
      {.name = "tau", .dtype = kF32, .range = rt::ParamRange{0.0, {}, false, true}});
  expect(b.param(0), 0, std::numeric_limits<float>::max());
}
TEST_F(Ranges, ParametersMayRoundToInfinityPastAClosedSide) {
  program.info.params.push_back(
      {.name = "tau", .dtype = kF32, .range = rt::ParamRange{0.0, 1e300, false, false}});
  expect(b.param(0), 0, kInf);
}
TEST_F(Ranges, SuchAParameterTimesZeroMayBeNaN) {
  program.info.params.push_back(
      {.name = "tau", .dtype = kF32, .range = rt::ParamRange{0.0, {}, false, false}});
  expect(b.mul(b.param(0), clamp(x, -1, 1)), -kInf, kInf, true);
}
// 2^62 + 500 and 2^62 are one double.
TEST_F(Ranges, IntegersThatDoublesCannotTellApartAreUnknown) {
  const ValueId is_up = b.lt(b.const_f32(0), x);
  const ValueId huge = b.const_i64(1ll << 62);
  const ValueId chosen = b.select(is_up, b.const_i64((1ll << 62) + 500), huge);
  expect(b.sub(chosen, huge), -0x1p63, 0x1p63);
}
TEST_F(Ranges, ASumThatRoundsIsUnknown) {
  const ValueId top = b.const_i64((1ll << 53) - 1);
  expect(b.add(top, b.const_i64(2)), -0x1p63, 0x1p63);
}
TEST_F(Ranges, BytesAreBytes) {
  expect(byte, 0, 255);
}
TEST_F(Ranges, MaskedAndShiftedWords) {
  const ValueId exponent = b.scalar(ScalarOp::bit_and, {word, b.const_u32(0x7fffffff)});
  expect(b.scalar(ScalarOp::shr, {exponent, b.const_u32(23)}), 0, 255);
}
TEST_F(Ranges, FractionsOfWords) {
  const ValueId bits = b.scalar(ScalarOp::bit_and, {word, b.const_u32(0x7fffff)});
  expect(b.mul(b.convert(bits, ComputeType::F32), b.const_f32(0x1p-23f)), 0, 1 - 0x1p-23);
}
TEST_F(Ranges, WordsThatMayWrapAreAnything) {
  expect(b.sub(word, b.const_u32(1)), 0, 0xffffffff);
}
TEST_F(Ranges, IntegersFromFloatsSaturate) {
  expect(b.convert(x, kF32, *make_int(4)), -8, 7);
}
TEST_F(Ranges, NaNBecomesZeroAsAnInteger) {
  // The magnitude is at least 3 where it is a number.
  const ValueId far = b.max(b.scalar(ScalarOp::abs, {x}), b.const_f32(3));
  expect(b.convert(far, kF32, kU8), 3, 255);
}
TEST_F(Ranges, RoundingAtRandomReachesTheNextIntegers) {
  expect(b.stochastic_round({0, false}, clamp(x, -0.5f, 2.25f), b.element()), -1, 3);
}
TEST_F(Ranges, EitherOfTwo) {
  const ValueId is_small = b.lt(x, b.const_f32(0));
  expect(b.select(is_small, clamp(x, -2, -1), b.const_f32(4)), -2, 4);
}

}  // namespace
}  // namespace cinch::kir
