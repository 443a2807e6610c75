// How large programs of a few lines may grow: limits with errors at a useful place, and things
// without limits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "check_fixture.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::sema {
namespace {

using dsl::DiagKind;

// Declarations 0 … depth, each made from the one before by `next`, which names it {i} and itself
// {j}.
std::string chain(int depth, std::string first, const char* next) {
  for (int i = 0; i < depth; ++i) {
    first += fmt::format(fmt::runtime(next), fmt::arg("i", i), fmt::arg("j", i + 1));
  }
  return first;
}

// The one mistake of checking the text, and of elaborating `name`: "line:column: …".
std::string mistake_of_both(const std::string& text, const char* name) {
  const Checked checked = check(text);
  EXPECT_EQ(checked.sink->num_errors(), 1u) << checked.all_lines();
  dsl::DiagSink sink;
  EXPECT_FALSE(elaborate(*checked.module, name, {}, sink).has_value());
  EXPECT_EQ(sink.num_errors(), 1u);
  if (sink.all().empty()) return "";
  const dsl::Diagnostic& found = sink.all().front();
  const auto at = checked.sources->find(found.span.file)->position(found.span.begin);
  return fmt::format("{}:{}: {}", at.line, at.column, message(found));
}

constexpr const char* kGrows = "{}: elaborating `{}` makes more than {}";

TEST(Growth, CallsThatCallTwice) {
  const std::string fns = chain(40, "fn f0(x: f32) -> f32 { x + 1 }\n",
                                "fn f{j}(x: f32) -> f32 {{ f{i}(x) + f{i}(x) }}\n");
  EXPECT_EQ(mistake_of_both(fns + in_encode("let x = f40(g[0])"), "t"),
            fmt::format(fmt::runtime(kGrows), "45:9", "f40(g[0])", "32768 operations"));
}

TEST(Growth, CallsThatMakeNothing) {
  const std::string fns =
      chain(40, "fn f0(x: f32) -> f32 { x }\n", "fn f{j}(x: f32) -> f32 {{ f{i}(f{i}(x)) }}\n");
  EXPECT_EQ(mistake_of_both(fns + in_encode("let x = f40(g[0])"), "t"),
            fmt::format(fmt::runtime(kGrows), "45:9", "f40(g[0])", "4194304 operations"));
}

TEST(Growth, CallsInSizes) {
  const std::string fns =
      chain(40, "fn f0(x: f32) -> f32 { x }\n", "fn f{j}(x: f32) -> f32 {{ f{i}(x) + f{i}(x) }}\n");
  EXPECT_EQ(mistake_of_both(fns + in_encode("let x = g", "size k = clamp(f40(n), 1, n)\n"), "t"),
            fmt::format(fmt::runtime(kGrows), "43:16", "f40(n)", "4194304 operations"));
}

TEST(Growth, LongProgramsAreNamedWhole) {
  std::string text = "let mut x = g\n";
  for (int i = 0; i < 20000; ++i) text += "x = x * 2 + 1\n";
  EXPECT_EQ(mistake_of_both(in_encode(text), "t"),
            fmt::format(fmt::runtime(kGrows), "1:12", "t", "32768 operations"));
}

TEST(Growth, ChainsOfThreeThousandStatementsHaveRoom) {
  std::string text = "let mut x = g\n";
  for (int i = 0; i < 3000; ++i) text += fmt::format("x = select(x < {}, x * 2, x - 1)\n", i);
  EXPECT_EQ(check(in_encode(text)).all_lines(), "");
}

TEST(Growth, ConstantsOfNumbersAreComputedOnce) {
  const std::string numbers = chain(60, "const c0 = 1\n", "const c{j} = c{i} + c{i}\n");
  EXPECT_EQ(check(numbers + in_encode("let x = g * c60")).all_lines(), "");
  const std::string tables = chain(60, "const c0 = [1, 0.5]\n", "const c{j} = c{i} * c{i}\n");
  EXPECT_EQ(check(tables + in_encode("let x = g * sum(c60)")).all_lines(), "");
}

TEST(Growth, AConstantInAClaimDividesExactly) {
  const std::string half = "const whole = 7 / 2\n";
  CheckedProgram both =
      check(half + in_encode("let x = fill(1.0, whole)", "claims density(whole / 10, 7 / 10)\n"))
          .program("t");
  ASSERT_EQ(both.claims.size(), 1u);
  const auto least = both.info.exprs->const_value(both.claims[0].numbers[0]);
  EXPECT_DOUBLE_EQ(least.to_double(), 0.35);
}

TEST(Growth, ConstantsOfOperators) {
  const std::string file = chain(40, "const c0 = iota(8)\n", "const c{j} = concat(c{i}, c{i})\n");
  EXPECT_EQ(mistake_of_both(file + in_encode("let x = sum(c40)"), "t"),
            fmt::format(fmt::runtime(kGrows), "45:13", "c40", "32768 operations"));
  const std::string own = chain(40, "const c0 = iota(8)\n", "const c{j} = concat(c{i}, c{i})\n");
  EXPECT_EQ(mistake_of_both(in_encode("let x = sum(c40)", own), "t"),
            fmt::format(fmt::runtime(kGrows), "17:13", "concat(c14, c14)", "32768 operations"));
}

TEST(Growth, DepthAcrossDeclarations) {
  const std::string consts = chain(5000, "const c0 = 1\n", "const c{j} = c{i} + 1\n");
  EXPECT_EQ(mistake_of_both(consts + in_encode("let x = g * c5000"), "t"),
            "5005:13: more than 700 nested expressions, with those inlined into them");
  const std::string brackets(200, '('), closed(200, ')');
  const std::string fns =
      chain(150, "fn f0(x: f32) -> f32 { x }\n",
            ("fn f{j}(x: f32) -> f32 {{ " + brackets + "f{i}(x)" + closed + " }}\n").c_str());
  EXPECT_EQ(mistake_of_both(fns + in_encode("let x = f150(g[0])"), "t"),
            "155:9: more than 700 nested expressions, with those inlined into them");
}

constexpr const char* kPair =
    "compressor plain {\n  wire { x: [f32; n] }\n  encode(g: [f32; n]) { wire { x: g } }\n"
    "  decode(w) { w.x }\n}\n"
    "compressor pair(one: compressor, two: compressor) {\n"
    "  wire { a: one.wire, b: two.wire }\n"
    "  encode(g: [f32; n]) { wire { a: one.encode(g), b: two.encode(g) } }\n"
    "  decode(w) { one.decode(w.a) + two.decode(w.b) }\n}\n"
    "compressor twice(inner: compressor) {\n"
    "  wire { a: inner.wire, b: inner.wire }\n"
    "  encode(g: [f32; n]) { wire { a: inner.encode(g), b: inner.encode(g) } }\n"
    "  decode(w) { inner.decode(w.a) + inner.decode(w.b) }\n}\n"
    "compressor c0 = plain\n";

TEST(Growth, Compositions) {
  const std::string pairs = chain(60, kPair, "compressor c{j} = pair(c{i}, c{i})\n");
  EXPECT_EQ(mistake_of_both(pairs, "c60"),
            fmt::format(fmt::runtime(kGrows), "76:12", "c60", "4096 compressors"));
  const std::string long_chain = chain(70, kPair, "compressor c{j} = twice(c{i})\n");
  EXPECT_NE(check(long_chain).find(DiagKind::TooLarge), nullptr);
}

TEST(Growth, PartsOfWires) {
  const std::string twice = chain(40, kPair, "compressor c{j} = twice(c{i})\n");
  EXPECT_EQ(mistake_of_both(twice, "c40"),
            fmt::format(fmt::runtime(kGrows), "12:25", "b", "16384 fields and counts of a wire"));
}

TEST(Growth, ThreeThousandFields) {
  std::string fields, values;
  for (int i = 0; i < 3000; ++i) {
    fields += fmt::format("x{}: [f32; n], ", i);
    values += fmt::format("x{}: g * {}, ", i, i);
  }
  EXPECT_EQ(check("compressor t {\n  wire { " + fields + " }\n  encode(g: [f32; n]) { wire { " +
                  values + " } }\n  decode(w) { w.x2999 }\n}\n")
                .all_lines(),
            "");
}

// Versions of names and epochs of masks must not meet, however many there are.
TEST(Growth, ManyLoopsForgetMasks) {
  std::string loops;
  for (int i = 0; i < 4096; ++i) loops += "for i in 0..1 { }\n";
  const Checked checked =
      check(in_encode("let mut x = g\nlet a = filter(g, where: x > 0)\nx = x + 1\n" + loops +
                      "let b = filter(g, where: x > 0)\nlet c = a + b\n"));
  EXPECT_NE(checked.find(DiagKind::CannotCombine), nullptr) << checked.all_lines();
}

}  // namespace
}  // namespace cinch::sema
