// "Reading a program": where a line end ends a statement, and which brackets belong together.
#include "parse_fixture.h"

namespace cinch::dsl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NewlineTest, LinesEndStatementsInBraces) {
  EXPECT_EQ(body_dump("let a = 1\nlet b = 2"), "    let a 1\n    let b 2\n");
  EXPECT_EQ(body_dump("let a = 1; let b = 2;"), "    let a 1\n    let b 2\n");
}

TEST(NewlineTest, LinesGoOnInParenthesesAndBrackets) {
  EXPECT_EQ(body_dump("let a = f(\n1\n,\n2\n)\nlet b = x[\n0\n]"),
            "    let a (call f 1 2)\n    let b (index x 0)\n");
}

TEST(NewlineTest, LinesGoOnBehindOperatorsAndCommas) {
  EXPECT_EQ(body_dump("let a =\n1 +\n2 as\nf32\nlet b = c &&\nd"),
            "    let a (+ 1 (as 2 f32))\n    let b (&& c d)\n");
  EXPECT_EQ(body_dump("while a < b,\nat_most:\n3 {\n}"), "    while (< a b) at_most 3\n");
  EXPECT_EQ(dump_of("fn f(x: f32) ->\nf32 { x }\n"),
            "fn f\n  param x: f32\n  result f32\n  value x\n");
}

TEST(NewlineTest, LinesGoOnBeforeClosingBraceAndElse) {
  EXPECT_EQ(body_dump("if a { b = 1 }\nelse { b = 2 }"),
            "    do if a\n      assign b 1\n    else block\n      assign b 2\n");
  EXPECT_EQ(body_dump("wire { a,\nb\n}"), "    value (wire a: a b: b)\n");
}

TEST(NewlineTest, BracesInsideParenthesesAreStatementsAgain) {
  EXPECT_EQ(body_dump("let a = f(|x| {\nlet y = x\ny\n}, 1)"),
            "    let a (call f (lambda |x| { let y x; value y; }) 1)\n");
}

TEST(NewlineTest, ALineThatBeginsWithAnOperatorIsAStatementOfItsOwn) {
  const Parsed parsed("compressor c {\n encode(g) {\n let x = a\n  - b\n wire { x }\n }\n}\n");
  EXPECT_THAT(parsed.places(), ElementsAre("4:3 UnusedExpression"));
  EXPECT_EQ(parsed.sink.all()[0].notes.size(), 1u);
}

TEST(NewlineTest, AngleBracketsOfTypesEndLines) {
  EXPECT_EQ(body_dump("let a = b as int<4>\nlet c = d"), "    let a (as b int<4>)\n    let c d\n");
  EXPECT_EQ(body_dump("let a = b as uint<(k)>\nwire { a }"),
            "    let a (as b uint<(paren k)>)\n    value (wire a: a)\n");
}

TEST(NewlineTest, AngleBracketsAreCutOffLongerOperators) {
  EXPECT_EQ(expr_dump("bitcast<int<4>>(x)"), "(bitcast int<4> x)");
  EXPECT_EQ(dump_of("compressor c { state s: int<4>= 0 }\n"),
            "compressor c\n  state s: int<4> = 0\n");
  EXPECT_EQ(expr_dump("x as int<4>> y"), "(> (as x int<4>) y)");
}

TEST(NewlineTest, ComparisonsWithNamesCalledIntStayComparisons) {
  EXPECT_EQ(expr_dump("int < b"), "(< int b)");
  EXPECT_EQ(expr_dump("bitcast < u32"), "(< bitcast u32)");
}

TEST(NewlineTest, IntervalsMixTheirBrackets) {
  EXPECT_EQ(dump_of("compressor c(a: f32 = 1 in (0, 1], b: f32 in [0, 1), c: f32 in (0, 1)) {}\n"),
            "compressor c\n  param a: f32 = 1 in (0, 1]\n  param b: f32 in [0, 1)\n"
            "  param c: f32 in (0, 1)\n");
  EXPECT_EQ(dump_of("compressor c(a: u32 in (1 + 1)..(3)) {}\n"),
            "compressor c\n  param a: u32 in [(paren (+ 1 1)), (paren 3))\n");
}

TEST(NewlineTest, InIsANameElsewhere) {
  EXPECT_EQ(body_dump("let in = 3\nlet a = in[0]\nlet b = in(1, 2)"),
            "    let in 3\n    let a (index in 0)\n    let b (call in 1 2)\n");
}

TEST(NewlineTest, ABlockCommentWithALineEndIsALineEnd) {
  EXPECT_EQ(body_dump("let a = 1 /*\n*/ let b = 2"), "    let a 1\n    let b 2\n");
  EXPECT_FALSE(Parsed("const a = 1 /* */ const b = 2").places().empty());
}

TEST(NewlineTest, IndentsMeanNothingWhileBracketsMatch) {
  const std::string text =
      "compressor c {\nencode(g) {\n    if a {\n x = 1\n}\n}\n  decode(w) {\nw\n}\n}\n";
  EXPECT_THAT(Parsed(text).places(), IsEmpty());
  EXPECT_THAT(
      Parsed("fn f(x: f32) -> f32 {\nif a {\n    if b {\n1\n} else { 2 }\n} else { 3 }\n}\n")
          .places(),
      IsEmpty());
}

TEST(NewlineTest, FilesWithoutALastLineEndAreWhole) {
  EXPECT_THAT(Parsed("const a = 1").places(), IsEmpty());
  EXPECT_THAT(Parsed("").places(), IsEmpty());
  EXPECT_THAT(Parsed("\n\n// only\n").places(), IsEmpty());
}

}  // namespace
}  // namespace cinch::dsl
