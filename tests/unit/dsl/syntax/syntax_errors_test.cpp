// Every syntax diagnostic, at its place; several in one run; recovery without follow-ups.
#include "parse_fixture.h"

namespace cinch::dsl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Diagnostics of statements inside an encode; the statements start on line 1.
std::vector<std::string> body_places(const std::string& statements) {
  return Parsed("compressor c { encode(g) {" + statements + "\n} }\n").places();
}

TEST(SyntaxErrorsTest, UnclosedBracketIsReportedWhereItWasOpened) {
  EXPECT_THAT(Parsed("const A = f(1, 2\n").places(), ElementsAre("1:12 UnclosedBracket"));
  EXPECT_THAT(Parsed("const A = [1, 2\nconst B = 3\n").places(),
              ElementsAre("1:11 UnclosedBracket"));
  EXPECT_THAT(Parsed("compressor c {\n  size k = n\n").places(),
              ElementsAre("1:14 UnclosedBracket"));
}

TEST(SyntaxErrorsTest, UnclosedParenthesisEndsAtTheNextStatement) {
  const Parsed parsed(
      "compressor c {\n  encode(g) {\n    let a = f(g, 1\n    let b == 2\n    wire { a }\n  "
      "}\n}\n");
  EXPECT_THAT(parsed.places(), ElementsAre("3:14 UnclosedBracket", "4:11 Expected"));
}

TEST(SyntaxErrorsTest, UnclosedParenthesisEndsAtTheBraceAroundIt) {
  const Parsed parsed("compressor c {\n  encode(g) {\n    x = f(g, 1\n  }\n  decode(w) { w }\n}\n");
  EXPECT_THAT(parsed.places(), ElementsAre("3:10 UnclosedBracket"));
}

TEST(SyntaxErrorsTest, UnclosedBraceOfAMethodIsFoundByItsIndent) {
  const Parsed parsed(
      "compressor c {\n  encode(g) {\n    wire { a }\n\n  decode(w) { w }\n}\n\ncompressor d {}\n");
  EXPECT_THAT(parsed.places(), ElementsAre("2:13 UnclosedBracket"));
  EXPECT_EQ(parsed.module.decls.size(), 2u);
}

TEST(SyntaxErrorsTest, UnclosedBraceOfABlockIsFoundByItsIndent) {
  const Parsed parsed(
      "compressor c {\n  encode(g) {\n    if a {\n      x = 1\n  }\n  decode(w) { w }\n}\n");
  EXPECT_THAT(parsed.places(), ElementsAre("3:10 UnclosedBracket"));
}

TEST(SyntaxErrorsTest, StrayClosingBracketIsReported) {
  EXPECT_THAT(Parsed("const A = 1)\n").places(), ElementsAre("1:12 UnmatchedBracket"));
  EXPECT_THAT(Parsed("compressor c {\n}\n}\n").places(), ElementsAre("3:1 UnmatchedBracket"));
}

TEST(SyntaxErrorsTest, MixedBracketsReportTheInnerOne) {
  EXPECT_THAT(Parsed("const A = f([1, 2)\n").places(), ElementsAre("1:13 UnclosedBracket"));
}

TEST(SyntaxErrorsTest, SaysWhatWasExpectedAndFound) {
  EXPECT_THAT(Parsed("const = 1\n").messages(), ElementsAre("expected a name, found `=`"));
  EXPECT_THAT(Parsed("const A\n").messages(),
              ElementsAre("expected `=`, found the end of the line"));
  EXPECT_THAT(Parsed("const A =").messages(),
              ElementsAre("expected an expression, found the end of the file"));
  EXPECT_THAT(Parsed("const let = 1\n").messages(),
              ElementsAre("expected a name, found the reserved word `let`"));
  EXPECT_THAT(Parsed("const A = f(a b)\n").messages(),
              ElementsAre("expected `,` or `)`, found `b`"));
  EXPECT_THAT(Parsed("const A = f(a,, b)\n").messages(),
              ElementsAre("expected an expression, found `,`"));
  EXPECT_THAT(Parsed("const A = x[]\n").messages(),
              ElementsAre("expected an expression, found `]`"));
  EXPECT_THAT(Parsed("const A = 1 2\n").messages(),
              ElementsAre("expected the end of the declaration, found `2`"));
  EXPECT_THAT(Parsed("const A = a as 3\n").messages(), ElementsAre("expected a type, found `3`"));
  EXPECT_THAT(Parsed("fn f(x) -> f32 { x }\n").messages(), ElementsAre("expected `:`, found `)`"));
  EXPECT_THAT(Parsed("fn f(x: f32) { x }\n").messages(), ElementsAre("expected `->`, found `{`"));
  EXPECT_THAT(Parsed("import 3\n").messages(),
              ElementsAre("expected a name like `std.sparsify` or a file in quotes, found `3`"));
  EXPECT_THAT(Parsed("compressor c d\n").messages(),
              ElementsAre("expected `(`, `{` or `=`, found `d`"));
  EXPECT_THAT(Parsed("extern fn f(x: f32) -> f32\n").messages(),
              ElementsAre("expected `from`, found the end of the line"));
}

TEST(SyntaxErrorsTest, SaysWhatAnItemLacks) {
  const auto messages = [](const std::string& item) {
    return Parsed("compressor c {\n" + item + "\n}\n").messages();
  };
  EXPECT_THAT(messages("state s: [f32; n]"),
              ElementsAre("expected `=`, found the end of the line"));
  EXPECT_THAT(messages("wire index: f32"), ElementsAre("expected `.`, found `:`"));
  EXPECT_THAT(messages("wire { a: f32 by mean }"),
              ElementsAre("expected `sum`, `min` or `max`, found `mean`"));
  EXPECT_THAT(messages("wire { count m < n }"), ElementsAre("expected `<=`, found `<`"));
  EXPECT_THAT(messages("wire { a: [f32 n] }"), ElementsAre("expected `;`, found `n`"));
  EXPECT_THAT(messages("decode(w) w"), ElementsAre("expected a block `{ … }`, found `w`"));
  EXPECT_THAT(messages("encode {}"), ElementsAre("expected `(`, found `{`"));
  EXPECT_THAT(messages("size k = n size j = n"),
              ElementsAre("expected the end of the item, found `size`"));
  EXPECT_THAT(messages("state s: int<3 + 4> = 0"), ElementsAre("expected `=`, found `<`"));
}

TEST(SyntaxErrorsTest, SaysWhatAParameterLacks) {
  EXPECT_THAT(Parsed("compressor c(a: f32 = 1 in 0.5, b = 3, const 4) {}\n").places(),
              ElementsAre("1:31 Expected", "1:35 Expected", "1:46 Expected"));
  EXPECT_THAT(Parsed("compressor c(a: f32 = 1 in (0, 1, 2)) {}\n").messages(),
              ElementsAre("expected `)` or `]`, found `,`"));
}

TEST(SyntaxErrorsTest, UnknownDeclarationSuggestsTheNearestWord) {
  const Parsed parsed("compresor c = d\n");
  EXPECT_THAT(parsed.places(), ElementsAre("1:1 UnknownDeclaration"));
  EXPECT_THAT(parsed.errors(), HasSubstr("did you mean `compressor`?"));
}

TEST(SyntaxErrorsTest, UnknownItemSuggestsTheNearestWord) {
  const Parsed parsed("compressor c {\n  encod(g) { g }\n}\n");
  EXPECT_THAT(parsed.places(), ElementsAre("2:3 UnknownItem"));
  EXPECT_THAT(parsed.errors(), HasSubstr("did you mean `encode`?"));
}

TEST(SyntaxErrorsTest, UnusedExpressionsAreMistakesUnlessLast) {
  EXPECT_THAT(body_places("a\nb"), ElementsAre("1:27 UnusedExpression"));
  EXPECT_THAT(body_places("wire { a }\nlet b = 1"), ElementsAre("1:27 UnusedExpression"));
  EXPECT_THAT(body_places("if a { b = 1 }\nb"), IsEmpty());
}

TEST(SyntaxErrorsTest, OnlyNamesAndTheirElementsAreAssigned) {
  EXPECT_THAT(body_places("f(x) = 1"), ElementsAre("1:27 CannotAssign"));
  EXPECT_THAT(body_places("w.a = 1"), ElementsAre("1:27 CannotAssign"));
  EXPECT_THAT(body_places("1 = x"), ElementsAre("1:27 CannotAssign"));
  EXPECT_THAT(body_places("w.a[0] = 1"), ElementsAre("1:27 CannotAssign"));
}

TEST(SyntaxErrorsTest, LoopsNeedTheirLimit) {
  EXPECT_THAT(body_places("while a { b = 1 }"), ElementsAre("1:27 LoopWithoutLimit"));
  EXPECT_THAT(body_places("while a, most: 3 { b = 1 }"), ElementsAre("1:36 Expected"));
}

TEST(SyntaxErrorsTest, RangesStandInIndicesOnly) {
  EXPECT_THAT(body_places("let a = 0..3"), ElementsAre("1:36 Expected"));
}

TEST(SyntaxErrorsTest, TooDeepBracketsAreReportedOnce) {
  const std::string open(100000, '(');
  const Parsed parsed("const A = " + open + "1" + std::string(100000, ')') + "\n");
  EXPECT_THAT(parsed.places(), ElementsAre("1:267 TooDeep"));
}

TEST(SyntaxErrorsTest, TooManyErrorsEndTheList) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "let\n";
  const Parsed parsed(text);
  EXPECT_EQ(parsed.sink.all().size(), kMaxSyntaxErrors + 1);
  EXPECT_EQ(parsed.sink.all().back().kind, DiagKind::TooManyErrors);
}

TEST(SyntaxErrorsTest, FilesOverTheLimitAreNotRead) {
  EXPECT_THAT(Parsed(std::string(kMaxSourceBytes + 1, ' ')).places(),
              ElementsAre("1:1 FileTooLarge"));
  EXPECT_THAT(Parsed(std::string(kMaxSourceBytes, ' ')).places(), IsEmpty());
}

TEST(SyntaxErrorsTest, SeveralMistakesComeInOneRunInTheOrderOfTheText) {
  const Parsed parsed(
      "const = 1\ncompressor c(a = 1) {\n  siz k = 3\n  state s: [f32; n]\n  encode(g) {\n"
      "    let n2 == 3\n    foo(a b)\n    1 + \n  }\n  decode(w) w\n}\nimport\n");
  EXPECT_THAT(parsed.places(), ElementsAre("1:7 Expected", "2:16 Expected", "3:3 UnknownItem",
                                           "4:20 Expected", "6:12 Expected", "7:11 Expected",
                                           "8:8 Expected", "10:13 Expected", "12:7 Expected"));
}

TEST(SyntaxErrorsTest, WhatIsRightAroundAMistakeIsKept) {
  const Parsed parsed("const A = 1\nconst B = )\nconst C = 3\n");
  EXPECT_THAT(parsed.places(), ElementsAre("2:11 UnmatchedBracket"));
  EXPECT_THAT(dump(parsed.module), HasSubstr("const C 3"));
}

}  // namespace
}  // namespace cinch::dsl
