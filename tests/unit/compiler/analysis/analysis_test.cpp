// Linearity, aggregation and safety facts, on both sides of each rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/analysis/proofs.h"
#include "compiler/analysis/rank_sums.h"
#include "compiler/ir/text/text.h"

namespace cinch::analysis {
namespace {

ir::Program parsed(const std::string& text) {
  rt::Result<ir::Program> program = ir::parse(text);
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

// The dependence of %9 on the field %0 ([f32; n]); %1 is zero, %2 two, %3 a constant mask, %4 iota.
Dependence dependence_of(const std::string& ops) {
  const ir::Program program = parsed(
      "name=p\ncounts {name=m, bound=n}\nwire { fields {name=value, type=[f32; n], sum=sum} "
      "}\ndecode {\n%0: [f32; "
      "n] "
      "= field {index=0}\n%1: f32 = const_scalar {value=0}\n%2: f32 = const_scalar {value=2}\n%4: "
      "[u32; n] = iota\n%5: u32 = const_scalar {value=3}\n%3: [bool; n] = map.lt %4, %5\n" +
      ops + "\nyield\nresults output(%0)\n}\n");
  const ir::Function& decode = program.functions[0];
  const auto known = find_dependences(program, decode);
  // %9 is the last value of the body.
  const auto& body = decode.regions[decode.body.index()].ops;
  return known[decode.ops[body[body.size() - 2].index()].results[0].index()];
}

class Linear : public testing::TestWithParam<const char*> {};
TEST_P(Linear, IsSeen) {
  EXPECT_TRUE(dependence_of(GetParam()).is_linear);
  EXPECT_FALSE(dependence_of(GetParam()).is_constant);
}
INSTANTIATE_TEST_SUITE_P(
    Ops, Linear,
    testing::Values(
        "%9: [f32; n] = map.mul %0, %2", "%9: [f32; n] = map.mul %2, %0",
        "%9: [f32; n] = map.div %0, %2", "%9: [f32; n] = map.add %0, %0",
        "%9: [f32; n] = map.sub %0, %1", "%9: [f32; n] = map.neg %0",
        "%9: [f32; n] = map.fma %0, %2, %0", "%9: [f32; n] = map.select %3, %0, %1",
        "%9: [bf16; n] = convert %0", "%9: [f32; n] = gather %0, %4",
        "%9: [f32; n] = scatter_add %4, %0",
        "%8: [f32; n] = fill %1 %9: [f32; n] = scatter %8, %4, %0",
        "%9: f32 = reduce %0, %1 {axis=all, combiner=add}",
        "%9: f32 = reduce %0, %1, %3 {axis=all, combiner=add}",
        "%9: [f32; n] = scan %0, %1 {axis=all, combiner=add}",
        "%8: [f32; n] = random {site=0, shared} %9: [f32; n] = map.mul %0, %8",
        "%8: [u32; n] = random_index {below=n, site=0, shared} %9: [f32; n] = gather %0, %8",
        "%8: [f32; ceil_div(n, 4), 4] = chunk %0 %9: [f32; ceil_div(n, 4), 4] = hadamard %8",
        "%9: [f32; n] = for_loop %0 {begin=0, end=3} (%20: i64, %21: [f32; n]) { %22: [f32; n] = "
        "map.add %21, %0 yield %22 }",
        "%8: bool = const_scalar {value=1} %9: [f32; n] = if_else %8 () { yield %0 } () { %7: "
        "[f32; n] "
        "= map.neg %0 yield %7 }"));

class Other : public testing::TestWithParam<const char*> {};
TEST_P(Other, IsNotTakenForLinear) {
  EXPECT_FALSE(dependence_of(GetParam()).is_linear);
  EXPECT_FALSE(dependence_of(GetParam()).is_constant);
}
INSTANTIATE_TEST_SUITE_P(
    Ops, Other,
    testing::Values(
        "%9: [f32; n] = map.add %0, %2", "%9: [f32; n] = map.mul %0, %0",
        "%9: [f32; n] = map.div %2, %0", "%9: [f32; n] = map.abs %0",
        "%9: [f32; n] = map.max %0, %1",
        "%8: [bool; n] = map.gt %0, %1 %9: [f32; n] = map.select %8, %0, %1",
        "%9: [i32; n] = convert %0", "%9: [u32; n] = bitcast %0", "%9: [f16; n] = convert %0",
        "%9: [f8e4m3; n] = convert %0", "%9: [f8e5m2; n] = convert %0",
        "%9: [f32; n] = stochastic_round %0 {site=0, shared}",
        "%9: f32 = reduce %0, %1 {axis=all, combiner=max}",
        "%9: f32 = reduce %0, %2 {axis=all, combiner=add}", "%9: [u32; n] = argsort %0 {axis=all}",
        "%8: [f32; n] = random {site=0} %9: [f32; n] = map.mul %0, %8",
        "%8: [u32; n] = convert %0 %9: [f32; n] = scatter_add %8, %0",
        "%8: [bool; n] = map.gt %0, %1 %7: [u32; m], %6: u32 = nonzero %8 {index=0} %9: [u32; m] = "
        "iota",
        "%9: [f32; n] = for_loop %0 {begin=0, end=3} (%20: i64, %21: [f32; n]) { %22: [f32; n] = "
        "map.mul %21, %0 yield %22 }",
        "%9: f32 = for_loop %2 {begin=0, end=3} (%20: i64, %21: f32) { %22: f32 = reduce %0, %1 "
        "{axis=all, combiner=add} %23: f32 = map.add %21, %22 yield %23 }",
        "%9: [f32; n] = while_loop %0 {at_most=3} (%20: [f32; n]) { %21: f32 = reduce %20, %1 "
        "{axis=all, combiner=add} %22: bool = map.lt %21, %2 yield %22 } (%23: [f32; n]) { %24: "
        "[f32; "
        "n] = map.mul %23, %2 yield %24 }",
        "%8: f32 = reduce %0, %1 {axis=all, combiner=add} %7: bool = map.lt %8, %2 %9: [f32; n] = "
        "if_else %7 () { yield %0 } () { %6: [f32; n] = map.neg %0 yield %6 }",
        "%8: f32 = host_size {size=worker} %9: [f32; n] = map.mul %0, %8"));

TEST(Constant, IsWhatNoInputReaches) {
  EXPECT_TRUE(dependence_of("%9: [u32; n] = map.add %4, %5").is_constant);
  EXPECT_TRUE(dependence_of("%9: [f32; n] = normal {site=4, shared}").is_constant);
  EXPECT_FALSE(dependence_of("%9: [f32; n] = normal {site=4}").is_constant);
}

// Likewise of a field of integers %0 ([i16; n]), which %1 is as i32; %2 is a number of that type.
bool is_linear_in_integers(const std::string& number, const std::string& ops) {
  const ir::Program program = parsed(
      "name=p\nwire { fields {name=value, type=[i16; n], sum=sum} }\ndecode {\n%0: [i16; n] = "
      "field {index=0}\n%1: [i32; n] = convert %0\n%2: i32 = const_scalar {value=" +
      number + "}\n%3: i32 = const_scalar {value=0}\n%5: [u32; n] = iota\n" + ops +
      "\n%10: [f32; n] = convert %9\nyield\nresults output(%10)\n}\n");
  const ir::Function& decode = program.functions[0];
  return find_dependences(program, decode)[decode.results.output.index()].is_linear;
}

TEST(Integers, AreLinearWhereTheyCannotWrap) {
  const std::string product = "%9: [i32; n] = map.mul %1, %2";
  EXPECT_TRUE(is_linear_in_integers("65535", product));
  EXPECT_FALSE(is_linear_in_integers("65537", product));
  EXPECT_TRUE(is_linear_in_integers("3", "%9: [i32; n] = map.add %1, %1"));
  EXPECT_TRUE(is_linear_in_integers("3", "%9: [i32; n] = map.neg %1"));
  EXPECT_FALSE(is_linear_in_integers("3", "%9: [i16; n] = map.neg %0"));
  const std::string large = "%8: [i32; n] = map.mul %1, %2 ";
  EXPECT_FALSE(is_linear_in_integers("60000", large + "%9: [i32; n] = map.add %8, %8"));
  EXPECT_FALSE(is_linear_in_integers(
      "3", "%8: i32 = reduce %1, %3 {axis=all, combiner=add} %9: [i32; n] = fill %8"));
  EXPECT_FALSE(is_linear_in_integers("3", "%9: [i32; n] = scan %1, %3 {axis=all, combiner=add}"));
  EXPECT_FALSE(is_linear_in_integers("3", "%9: [i32; n] = scatter_add %5, %1"));
  EXPECT_TRUE(is_linear_in_integers("3", "%9: [i32; n] = gather %1, %5"));
}

rt::Aggregation aggregation_of(const std::string& wire, const std::string& encode,
                               const std::string& decode) {
  return find_aggregation(
      parsed("name=p\ncounts {name=m, bound=n}\n" + wire + "\nencode { %0: [f32; n] = gradient " +
             encode + " yield results fields(%9) }\ndecode { %0: [f32; n] = field {index=0} " +
             decode + " yield results output(%9) }"));
}

constexpr const char* kBySum = "wire { fields {name=value, type=[f32; n], sum=sum} }";
constexpr const char* kNeg = "%9: [f32; n] = map.neg %0";
constexpr const char* kAbs = "%9: [f32; n] = map.abs %0";

TEST(Aggregation, IsProvedByALinearDecodeOrEncode) {
  EXPECT_EQ(aggregation_of(kBySum, kAbs, kNeg), rt::Aggregation::SumProved);
  EXPECT_EQ(aggregation_of(kBySum, kNeg, kAbs), rt::Aggregation::SumProved);
}
TEST(Aggregation, IsLeftToTestOtherwise) {
  EXPECT_EQ(aggregation_of(kBySum, kAbs, kAbs), rt::Aggregation::SumToTest);
  EXPECT_EQ(aggregation_of("wire { fields {name=value, type=[f32; n], sum=max} }", kNeg, kNeg),
            rt::Aggregation::SumToTest);
}
TEST(Aggregation, NeedsEveryFieldAndNoCounts) {
  EXPECT_EQ(aggregation_of("wire { fields {name=value, type=[f32; n]} }", kNeg, kNeg),
            rt::Aggregation::Gather);
  EXPECT_EQ(
      aggregation_of("wire { counts {} fields {name=value, type=[f32; n], sum=sum} }", kNeg, kNeg),
      rt::Aggregation::Gather);
}

bool is_linear(const std::string& finish) {
  return is_finish_linear(
      parsed("name=p\nstates {name=s, type=[f32; n]}\nhas_finish\nfinish { %0: [f32; n] = gradient "
             "%1: [f32; n] = state {index=0} %2: f32 = host_size {size=world} " +
             finish + " }"));
}

TEST(Finish, IsLinearWhereTheUpdateIs) {
  EXPECT_TRUE(is_linear("yield results output(%0) states(%1)"));
  EXPECT_TRUE(is_linear("%3: [f32; n] = map.div %0, %2 yield results output(%3) states(%1)"));
  EXPECT_TRUE(is_linear("%3: [f32; n] = map.add %1, %0 yield results output(%3) states(%3)"));
  EXPECT_FALSE(is_linear("%3: [f32; n] = map.sign %0 yield results output(%3) states(%1)"));
  EXPECT_FALSE(is_linear("%3: [f32; n] = map.add %0, %2 yield results output(%3) states(%1)"));
  EXPECT_FALSE(is_linear("%3: [f32; n] = map.mul %0, %1 yield results output(%3) states(%1)"));
  EXPECT_FALSE(
      is_linear("%3: f32 = const_scalar {value=0} %4: [bool; n] = map.lt %0, %3 %5: [f32; "
                "n] = map.select %4, %3, %0 yield results output(%5) states(%1)"));
}
// The state that one step leaves is the next step's update.
TEST(Finish, IsLinearWhereItsStatesAre) {
  EXPECT_FALSE(is_linear("%3: [f32; n] = map.sign %0 yield results output(%1) states(%3)"));
  EXPECT_TRUE(is_linear("yield results output(%1) states(%0)"));
}
TEST(Finish, MaySaturateAtTheEndsOfItsType) {
  const auto clamped = [](const std::string& scalar_op, const std::string& limit) {
    return is_linear("%3: f32 = const_scalar {value=" + limit + "} %4: [f32; n] = map." +
                     scalar_op + " %0, %3 yield results output(%4) states(%1)");
  };
  EXPECT_TRUE(clamped("min", "3.4e38"));
  EXPECT_TRUE(clamped("max", "-3.4e38"));
  EXPECT_FALSE(clamped("max", "3.4e38"));
  EXPECT_FALSE(clamped("min", "1e30"));
  EXPECT_FALSE(clamped("max", "0"));
}

std::vector<std::string> safety_of(const std::string& ops, const std::string& wire = "") {
  const ir::Program program = parsed(
      "name=p\nstates {name=pending, type=[f32; n]}\n" + wire +
      "init { %0: f32 = const_scalar {value=0} %1: [f32; n] = fill %0 yield results output(%1) }\n"
      "encode { %0.g: [f32; n] = gradient %1: [f32; n] = state {index=0} %2: [u32; n] = iota %3: "
      "[u32; n] = convert %0 " +
      ops + " yield results states(%1) }");
  std::vector<std::string> texts;
  for (const SafetyFact& fact : find_safety(program)) {
    texts.push_back(fact.what + " " + safety_kind_name(fact.kind) + ": " +
                    safety_way_name(fact.way));
  }
  return texts;
}

using testing::ElementsAre;

TEST(Safety, AccessesWithoutAChecksAreProved) {
  EXPECT_THAT(safety_of("%9: [f32; n] = gather %0, %2"),
              ElementsAre("read of 'g' in bounds: proved"));
}
TEST(Safety, AccessesWithAChecksAreCheckedOnTheDevice) {
  EXPECT_THAT(safety_of("check_index %3 {below=n, text=\"t\"} %9: [f32; n] = gather %0, %3"),
              ElementsAre("read of 'g' in bounds: checked on the device"));
  EXPECT_THAT(
      safety_of("check_unique %3 {cells=n, text=\"t\"} check_index %3 {below=n, text=\"t\"} "
                "%9: [f32; n] = scatter %1, %3, %0"),
      ElementsAre("store into 'pending' in bounds: checked on the device",
                  "store into 'pending' free of repeats: checked on the device"));
}
TEST(Safety, LoopsEnd) {
  EXPECT_THAT(safety_of("for_loop {begin=0, end=n} (%4: i64) { yield }"),
              ElementsAre("loop over 0..n ends: proved"));
  EXPECT_THAT(
      safety_of("while_loop {at_most=20} () { %4: bool = const_scalar {value=1} yield %4 } () "
                "{ yield }"),
      ElementsAre("loop of at most 20 turns ends: proved"));
}
TEST(Safety, TheReaderOfAPayloadChecksItsIndices) {
  const ir::Program program = parsed(
      "name=p\ncounts {name=m, bound=n}\nwire { counts {} fields {name=index, type=[u32; m], "
      "ascending, index_limit=n} "
      "fields {name=value, type=[f32; m]} }\ndecode { %0: [u32; m] = field {index=0} %1: [f32; m] "
      "= field {index=1} %2: f32 = "
      "const_scalar {value=0} %3: [f32; n] = fill %2 %4: [f32; n] = scatter %3, %0, %1 yield "
      "results "
      "output(%4) }");
  for (const SafetyFact& fact : find_safety(program)) {
    EXPECT_EQ(fact.way, SafetyWay::PayloadReader) << fact.what;
  }
  EXPECT_EQ(find_safety(program).size(), 2u);
}

// The range of %9, made from %0 ([f32; n]), %1 (-3), %2 (5), %3 (i32 7), %4 (iota).
std::optional<IntegerRange> range_of(const std::string& ops) {
  const ir::Program program = parsed(
      "name=p\nwire { fields {name=value, type=[f32; n]} }\ntable 0: [i8; 3] = (-3, 5, 4)\ndecode "
      "{\n"
      "%0: [f32; n] = field {index=0}\n%1: f32 = const_scalar {value=-3}\n%2: f32 = const_scalar "
      "{value=5}\n%3: i32 = const_scalar {value=7}\n%4: [u32; n] = iota\n" +
      ops + "\nyield\nresults output(%0)\n}\n");
  const ir::Function& decode = program.functions[0];
  const auto& body = decode.regions[decode.body.index()].ops;
  return find_integer_range(program, decode, decode.ops[body[body.size() - 2].index()].results[0]);
}

TEST(Ranges, OfTypes) {
  EXPECT_EQ(range_of("%9: [u5; n] = convert %0"), (IntegerRange{0, 31}));
  EXPECT_EQ(range_of("%8: [i2; n] = convert %0 %9: [i32; n] = convert %8"), (IntegerRange{-2, 1}));
  EXPECT_EQ(range_of("%9: [u32; n] = map.add %4, %4"), (IntegerRange{0, 4294967295}));
  EXPECT_EQ(range_of("%9: [u64; n] = convert %4"), (IntegerRange{0, 4294967295}));
  EXPECT_EQ(range_of("%9: [i64; n] = convert %0"), std::nullopt);
  EXPECT_EQ(range_of("%8: [bool; n] = map.lt %0, %1 %9: [i32; n] = convert %8"),
            (IntegerRange{0, 1}));
}

TEST(Ranges, OfFloatsBeforeTheyAreConverted) {
  const auto converted = [](const std::string& ops) {
    return range_of(ops + " %9: [i32; n] = convert %8");
  };
  EXPECT_EQ(converted("%8: [f32; n] = map.sign %0"), (IntegerRange{-1, 1}));
  EXPECT_EQ(converted("%8: [f32; n] = map.clamp %0, %1, %2"), (IntegerRange{-3, 5}));
  EXPECT_EQ(converted("%7: [f32; n] = map.min %0, %2 %8: [f32; n] = map.max %7, %1"),
            (IntegerRange{-3, 5}));
  EXPECT_EQ(converted("%7: [f32; n] = random {site=0} %6: [f32; n] = map.mul %7, %2 %8: [f32; n] = "
                      "map.floor %6"),
            (IntegerRange{0, 5}));
  // A NaN loses to the number in `min`, and is 0 as an integer.
  EXPECT_EQ(converted("%7: [f32; n] = fill %2 %8: [f32; n] = map.max %7, %2"),
            (IntegerRange{5, 5}));
  EXPECT_EQ(converted("%7: [f32; n] = map.sign %0 %6: [f32; n] = map.abs %7 %5: [f32; n] = map.add "
                      "%6, %2 %8: [f32; n] = map.neg %5"),
            (IntegerRange{-6, 0}));
  EXPECT_EQ(converted("%8: [f32; n] = map.mul %0, %2"), (IntegerRange{-2147483648LL, 2147483647}));
}

TEST(Ranges, OfIntegersThatMayWrap) {
  const std::string small = "%8: [i4; n] = convert %0 %7: [i32; n] = convert %8 ";
  EXPECT_EQ(range_of(small + "%9: [i32; n] = map.mul %7, %3"), (IntegerRange{-56, 49}));
  EXPECT_EQ(range_of(small + "%9: [i32; n] = map.sub %3, %7"), (IntegerRange{0, 15}));
  EXPECT_EQ(range_of(small + "%9: [i32; n] = map.bit_and %7, %3"),
            (IntegerRange{-2147483648LL, 2147483647}));
  EXPECT_EQ(range_of("%8: [i32; n] = convert %0 %9: [i32; n] = map.add %8, %3"),
            (IntegerRange{-2147483648LL, 2147483647}));
  EXPECT_EQ(range_of("%8: [i8; 3] = const_array {index=0} %9: [i8; n] = gather %8, %4"),
            (IntegerRange{-3, 5}));
}

}  // namespace
}  // namespace cinch::analysis
