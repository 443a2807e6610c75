// How the grammar parses programs: operators, statements, items, declarations.
#include "parse_fixture.h"

namespace cinch::dsl {
namespace {

using testing::ElementsAre;

TEST(ParserTest, ReadsTheWholeCorpus) {
  for (const CorpusFile& file : corpus()) {
    const Parsed parsed(file.text);
    EXPECT_FALSE(parsed.sink.has_errors()) << file.name << "\n" << parsed.errors();
    EXPECT_FALSE(parsed.module.decls.empty()) << file.name;
  }
}

TEST(ParserTest, OperatorsBindAsTheLanguageSays) {
  EXPECT_EQ(expr_dump("a + b * c"), "(+ a (* b c))");
  EXPECT_EQ(expr_dump("a * b @ c / d % e"), "(% (/ (@ (* a b) c) d) e)");
  EXPECT_EQ(expr_dump("a - b - c"), "(- (- a b) c)");
  EXPECT_EQ(expr_dump("-a as u8 * b"), "(* (as (- a) u8) b)");
  EXPECT_EQ(expr_dump("a << b + c"), "(<< a (+ b c))");
  EXPECT_EQ(expr_dump("a & b << c"), "(& a (<< b c))");
  EXPECT_EQ(expr_dump("a | b ^ c & d"), "(| a (^ b (& c d)))");
  EXPECT_EQ(expr_dump("a == b | c"), "(== a (| b c))");
  EXPECT_EQ(expr_dump("a < b && c >= d || !e"), "(|| (&& (< a b) (>= c d)) (! e))");
  EXPECT_EQ(expr_dump("a as u8 as f32"), "(as (as a u8) f32)");
}

TEST(ParserTest, SuffixesBindTighterThanPrefixes) {
  EXPECT_EQ(expr_dump("-a.b[c](d)"), "(- (call (index (field a b) c) d))");
  EXPECT_EQ(expr_dump("- -!a"), "(- (- (! a)))");
}

TEST(ParserTest, ReadsCallsWithLabels) {
  EXPECT_EQ(expr_dump("f(a, at: b, where: c > d,)"), "(call f a at: b where: (> c d))");
  EXPECT_EQ(expr_dump("f()"), "(call f)");
}

TEST(ParserTest, ReadsIndicesAndSlices) {
  EXPECT_EQ(expr_dump("x[a + 1..b]"), "(index x (.. (+ a 1) b))");
  EXPECT_EQ(expr_dump("x[0..=3]"), "(index x (..= 0 3))");
  EXPECT_EQ(expr_dump("x[i, j]"), "(index x i j)");
}

TEST(ParserTest, LambdasRunToTheNextCommaOrBracket) {
  EXPECT_EQ(expr_dump("map(x, y, |a, b| a + b | 1)"),
            "(call map x y (lambda |a b| (| (+ a b) 1)))");
  EXPECT_EQ(expr_dump("reduce(x, |a, b| a, 0)"), "(call reduce x (lambda |a b| a) 0)");
}

TEST(ParserTest, ReadsLiterals) {
  EXPECT_EQ(expr_dump("[1, 0xff, 1e-8, true, false, inf, nan, pi]"),
            "(array 1 0xff 1e-8 true false inf nan pi)");
}

TEST(ParserTest, NumbersHaveTheirValues) {
  const Parsed parsed("const A = 0xff\nconst B = 0.001\n");
  const auto value = [&](std::size_t decl) {
    const auto& node = parsed.module[parsed.module.decls[decl]].node;
    return std::get<ast::Literal>(parsed.module[std::get<ast::Const>(node).value].node);
  };
  EXPECT_EQ(value(0).integer, 255u);
  EXPECT_EQ(value(1).kind, ast::LiteralKind::Float);
  EXPECT_EQ(value(1).number, 0.001);
}

TEST(ParserTest, IfIsAnExpressionWithElseAndAStatementWithout) {
  EXPECT_EQ(body_dump("if a { 1 } else { 2 }"),
            "    value if a\n      value 1\n    else block\n      value 2\n");
  EXPECT_EQ(body_dump("if a { b = 1 }"), "    do if a\n      assign b 1\n");
  EXPECT_EQ(body_dump("if a { 1 } else { b = 2 }"),
            "    do if a\n      value 1\n    else block\n      assign b 2\n");
  EXPECT_EQ(expr_dump("if a { 1 } else if b { 2 } else { 3 }"),
            "(if a { value 1; } (if b { value 2; } { value 3; }))");
}

TEST(ParserTest, ReadsAssignments) {
  EXPECT_EQ(body_dump("x = 1\nx[i] = 2\nx[a..b] = 3"),
            "    assign x 1\n    assign x [ i ] 2\n    assign x [ (.. a b) ] 3\n");
}

TEST(ParserTest, ReadsLoops) {
  EXPECT_EQ(body_dump("for i in 0..n { x = i }"), "    for i in [0, n)\n      assign x i\n");
  EXPECT_EQ(body_dump("for i in (0, n] { x = i }"), "    for i in (0, n]\n      assign x i\n");
  EXPECT_EQ(body_dump("while (a || b) && c, at_most: 20 { x = 1 }"),
            "    while (&& (paren (|| a b)) c) at_most 20\n      assign x 1\n");
}

TEST(ParserTest, ResolvesEscapesInMessages) {
  EXPECT_EQ(body_dump("assert a, \"b \\\"c\\\" \\\\ \\n\""),
            "    assert a \"b \\\"c\\\" \\\\ \\n\"\n");
}

TEST(ParserTest, WordsAreNamesWhereTheyAreNotExpected) {
  EXPECT_EQ(body_dump("let count = 1\nlet by = sum(state)\nlet size = at_most + claims"),
            "    let count 1\n    let by (call sum state)\n    let size (+ at_most claims)\n");
  EXPECT_EQ(dump_of("compressor c { wire { count: u32, count count <= count, by: f32 by sum } }\n"),
            "compressor c\n  wire\n    field count: u32\n    count count <= count\n"
            "    field by: f32 by sum\n");
}

TEST(ParserTest, ReadsPackedFields) {
  EXPECT_EQ(dump_of("compressor c { wire { ascending: [u32; k] ascending below n + 1,\n"
                    "  elias: [u32; k] elias below 7, below: [u32; k] elias ascending below n,\n"
                    "  huffman: [u32; n] huffman(elias) } }\n"),
            "compressor c\n  wire\n    field ascending: [u32; k] ascending below (+ n 1)\n"
            "    field elias: [u32; k] elias below 7\n"
            "    field below: [u32; k] elias ascending below n\n"
            "    field huffman: [u32; n] huffman(elias)\n");
}

TEST(ParserTest, FieldsMayBeReservedWords) {
  EXPECT_EQ(expr_dump("w.in + w.if + inner.wire"),
            "(+ (+ (field w in) (field w if)) (field inner wire))");
}

TEST(ParserTest, TheBoundOfACountIsAdditive) {
  EXPECT_EQ(dump_of("compressor c { wire { count m <= 2 * k + ceil_div(n, 4), i: [u32; m] } }\n"),
            "compressor c\n  wire\n    count m <= (+ (* 2 k) (call ceil_div n 4))\n    field i: "
            "[u32; m]\n");
}

TEST(ParserTest, ReadsTypes) {
  EXPECT_EQ(
      dump_of("fn f(a: int<4>, b: uint<(x + 1)>, c: [[f32; n]; r, c + 1]) -> bool { true }\n"),
      "fn f\n  param a: int<4>\n  param b: uint<(paren (+ x 1))>\n"
      "  param c: [[f32; n]; r (+ c 1)]\n  result bool\n  value true\n");
}

TEST(ParserTest, ReadsImportsExternsAndCompositions) {
  EXPECT_EQ(dump_of("import std.sparsify\nimport \"a b.cinch\"\n"
                    "extern fn f(x: f32) -> f32 from \"f.h\"\ncompressor c = a.b(d(e: 1))\n"),
            "import std sparsify\nimport \"a b.cinch\"\nextern fn f from \"f.h\"\n  param x: f32\n"
            "  result f32\ncomposition c (call (field a b) (call d e: 1))\n");
}

TEST(ParserTest, DocCommentsBelongToWhatFollows) {
  const Parsed parsed("/// one\n/// two\n// plain\nconst A = 1\nconst B = 2\n");
  EXPECT_EQ(parsed.module[parsed.module.decls[0]].doc, "one\ntwo");
  EXPECT_EQ(parsed.module[parsed.module.decls[1]].doc, "");
}

TEST(ParserTest, KeepsClaimsAsWritten) {
  EXPECT_EQ(dump_of("compressor c { claims unbiased, contraction(k / n) }\n"),
            "compressor c\n  claims unbiased (call contraction (/ k n))\n");
}

TEST(ParserTest, MethodParametersMayLackTypes) {
  EXPECT_EQ(dump_of("compressor c { decode(w) { w } }\n"),
            "compressor c\n  decode\n    param w\n    value w\n");
}

TEST(ParserTest, LongLinesOfLittleDepthAreFine) {
  std::string text = "const A = [0";
  for (int i = 0; i < 20000; ++i) text += ", 1";
  EXPECT_FALSE(Parsed(text + "]\n").sink.has_errors());
}

}  // namespace
}  // namespace cinch::dsl
