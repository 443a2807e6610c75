// Rules of types and values, read off the dump: exact numbers, silent widening, arithmetic types,
// facts about indices, and checks before launch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/dsl/sema/check_fixture.h"

namespace cinch::sema {
namespace {

// The dump of a compressor with these statements in encode; the test fails on a diagnostic.
std::string dumped(const std::string& statements, const std::string& items = "") {
  Checked checked = check(in_encode(statements, items));
  EXPECT_EQ(checked.all_lines(), "");
  return checked.sink->has_errors() ? "" : dump(checked.program("t"));
}

#define EXPECT_DUMP(statements, part) \
  EXPECT_TRUE(contains(dumped(statements), part)) << dumped(statements)

TEST(SemaValues, ExactNumbersTakeTheTypeTheyMeet) {
  EXPECT_DUMP("let x = g * 2", "mul(gradient, 2_f32)");
  EXPECT_DUMP("let x = (g as i32) * 2", "mul(convert<i32>(gradient), 2_i32)");
  EXPECT_DUMP("let mut x = 6 / 2", "= 3_i32");
  EXPECT_DUMP("let mut x = 7 / 2", "= 3.5_f32");
  EXPECT_DUMP("let mut x = 3000000000", "= 3000000000_i64");
  EXPECT_DUMP("let mut x = 7 / 2.0", "= 3.5_f32");
  EXPECT_DUMP("let x = g * n", "mul(gradient, n_f32)");
}

TEST(SemaValues, NarrowTypesEnterArithmeticWider) {
  EXPECT_DUMP("let x = (g as u8) + (g as i4)",
              "add(convert<i32>(convert<u8>(gradient)), "
              "convert<i32>(convert<i4>(gradient)))");
  EXPECT_DUMP("let x = (g as f16) * 2", "mul(convert<f32>(convert<f16>(gradient)), 2_f32)");
  EXPECT_DUMP("let x = (g as i4) * g", "mul(convert<f32>(convert<i4>(gradient)), gradient)");
  EXPECT_DUMP("let x = (g as f64) * g", "mul(convert<f64>(gradient), convert<f64>(gradient))");
  EXPECT_DUMP("let x = (g as u4) * 0.5", "mul(convert<f32>(convert<u4>(gradient)), 0.5_f32)");
  EXPECT_DUMP("let x = clamp(g as u8, 0, 3)",
              "clamp(convert<i32>(convert<u8>(gradient)), 0_i32, 3_i32)");
}

TEST(SemaValues, ChoicesAmongNumbersAreSmall) {
  EXPECT_DUMP("let x = select(g > 0, 1, select(g < 0, -1, 0)) as i2",
              "select(gt(gradient, 0_f32), 1_i32, select(lt(gradient, 0_f32), -1_i32, 0_i32))");
  EXPECT_DUMP("let mut x = if g[0] > 0 { 1 } else { 2 }", "let mut x.0: i32 = ");
  EXPECT_DUMP("let x = fill(if g[0] > 0 { 1 } else { 2 }, 3)", "let x.0: [i32; 3] = ");
  EXPECT_DUMP("let x = map(g, |a| if a > 0 { 1 } else { 2 })", "let x.1: [i32; n] = ");
  EXPECT_DUMP("let mut x = if g[0] > 0 { 1 } else { 3000000000 }", "let mut x.0: i64 = ");
  EXPECT_DUMP("let mut x = if g[0] > 0 { 1 } else { n }", "let mut x.0: i64 = ");
}

TEST(SemaValues, ShiftsOfNumbersTakeTheTypeTheyMeetNotThatOfTheCount) {
  const std::string wide = "let u = bitcast<u32>(g) as u64\nlet c = count(g > 0)\n";
  EXPECT_DUMP(wide + "let x = u ^ (1 << c)", "shl(1_u64, convert<u64>(c.1))");
  EXPECT_DUMP(wide + "let x = u ^ ((1 << c) - 1)", "sub(shl(1_u64, convert<u64>(c.1)), 1_u64)");
  EXPECT_DUMP(wide + "let x = u ^ (1 << n)", "shl(1_u64, n_u64)");
  EXPECT_DUMP(wide + "let x = u ^ (1 << 63)", "9223372036854775808_u64");
  // A count that meets nothing may have any type.
  EXPECT_DUMP("let c = count(g > 0)\nlet mut x = 1 << c", "shl(1_u32, c.0)");
}

TEST(SemaValues, WordsAreThoseOfTheParameterBesideThem) {
  Checked checked = check(
      "compressor t(a: {x, y} = x, b: {z, x} = x) {\n  wire { value: [f32; n] }\n"
      "  encode(g: [f32; n]) { wire { value: if a == x && x == b { g } else { -g } } }\n"
      "  decode(w) { w.value }\n}\n"
      "compressor outer(inner: compressor) {\n  set inner.b = x\n  wire inner.wire\n"
      "  encode(g: [f32; n]) { inner.encode(g) }\n  decode(w) { inner.decode(w) }\n}\n"
      "compressor set_by_word = outer(t)\n");
  EXPECT_EQ(checked.all_lines(), "");
  const std::string text = dump(checked.program("t"));
  EXPECT_TRUE(contains(text, "bit_and(eq(param a, 0_u32), eq(1_u32, param b))")) << text;
  const std::string set = dump(checked.program("set_by_word"));
  EXPECT_TRUE(contains(set, "eq(1_u32, 1_u32)")) << set;
}

TEST(SemaValues, SizesAreComputedOnTheHost) {
  const std::string text =
      dumped("let x = fill(0, k)", "const half = 0.5\nsize k = ceil(half * n)\n");
  EXPECT_TRUE(contains(text, "size k = ")) << text;
  const std::string scalar_fn =
      "fn share(x: f32, of: f32) -> f32 { if x > of { of } else { x * 0.5 } }\n" +
      in_encode("let x = fill(0, k)", "size k = min(share(n, 8), n)\n");
  Checked checked = check(scalar_fn);
  EXPECT_EQ(checked.all_lines(), "");
}

TEST(SemaValues, IndicesKeepWhatIsKnownOfThem) {
  const char* const store = "s[i] = 0";
  const std::string state = "state s: [f32; n] = 0\n";
  for (const char* index :
       {"top_k(g, n)", "nonzero(g > 0)", "random_index(n, size: n)", "argsort(g)", "iota(n)",
        "argsort(g)[nonzero(g > 0)]", "sort(argsort(g))", "nonzero(g > 0)[0..0]",
        "filter(iota(n), where: g > 0)"}) {
    const std::string text = dumped("let i = " + std::string(index) + "\n" + store, state);
    EXPECT_TRUE(contains(text, "unique in_bounds] = ")) << index << "\n" << text;
  }
  for (const char* index : {"iota(n) / 2", "iota(n)[bitcast<u32>(g)]"}) {
    const Checked checked = check(in_encode("let i = " + std::string(index) + "\ns[i] = 0", state));
    EXPECT_NE(checked.find(dsl::DiagKind::IndexMayRepeat), nullptr) << index;
  }
}

TEST(SemaValues, FiltersByOneMaskShareACount) {
  EXPECT_DUMP("let m = g > 0\nlet a = filter(g, where: m)\nlet b = nonzero(m)\nlet x = a + g[b]",
              "add(");
  EXPECT_DUMP("let a = filter(g, where: g > 0)\nlet x = a + g[nonzero(g > 0)]", "add(");
  const Checked changed =
      check(in_encode("let mut m = g > 0\nlet a = filter(g, where: m)\nm = g < 0\nlet x = a + "
                      "filter(g, where: m)"));
  EXPECT_NE(changed.find(dsl::DiagKind::CannotCombine), nullptr);
  const Checked limited =
      check(in_encode("let x = filter(g, where: g > 0) + filter(g, where: g > 0, limit: 3)"));
  EXPECT_NE(limited.find(dsl::DiagKind::CannotCombine), nullptr);
}

TEST(SemaValues, FiltersShareACountThroughNamesAndFns) {
  const std::string large = "fn large(x: f32) -> bool { let a = abs(x); a > 1 && a < 9 }\n";
  const auto lines = [&](const std::string& statements) {
    return check(large + in_encode(statements)).all_lines();
  };
  EXPECT_EQ(lines("let m = large(g)\nlet x = filter(g, where: m) + g[nonzero(large(g))]"), "");
  EXPECT_EQ(lines("let a = g * 2\nlet x = filter(g, where: a > 1) + g[nonzero(g * 2 > 1)]"), "");
  // Reads of what has changed, and draws, are not the same.
  EXPECT_NE(lines("let mut y = g\nlet m = y > 1\ny = -g\n"
                  "let x = filter(g, where: m) + g[nonzero(y > 1)]"),
            "");
  EXPECT_NE(lines("let x = filter(g, where: random(n) > 0.5) + g[nonzero(random(n) > 0.5)]"), "");
  EXPECT_NE(lines("let x = filter(g, where: large(g)) + g[nonzero(large(-g))]"), "");
}

std::string filtered_in_decode(const std::string& encode, const std::string& mask) {
  return "compressor t {\n  wire { code: [i8; n], count m <= n, value: [f32; m] }\n"
         "  encode(g: [f32; n]) {\n    let code = clamp(g, -2, 2) as i4\n" +
         encode + "\n  }\n  decode(w) { scatter(w.value, at: nonzero(" + mask +
         "), size: n) }\n}\n";
}

TEST(SemaValues, FiltersInDecodeFindWhatEncodeSent) {
  const char* const sends = "    wire { code, value: filter(g, where: code != 0) }";
  Checked checked = check(filtered_in_decode(sends, "w.code != 0"));
  EXPECT_EQ(checked.all_lines(), "");
  const std::string text = dump(checked.program("t"));
  EXPECT_TRUE(contains(text, "\"count m: `nonzero` finds another number in the payload\"")) << text;
  // Another mask, one of other data, and one that encode did not filter by.
  for (const char* mask : {"w.code != 1", "w.code > 0", "random(n, shared: true) > 0.5"}) {
    const Checked other = check(filtered_in_decode(sends, mask));
    EXPECT_NE(other.find(dsl::DiagKind::CannotCombine), nullptr) << mask;
  }
  const char* const changes =
      "    let mut c = code\n    let v = filter(g, where: c != 0)\n    c = (-g) as i4\n"
      "    wire { code: c, value: v }";
  const Checked changed = check(filtered_in_decode(changes, "w.code != 0"));
  EXPECT_NE(changed.find(dsl::DiagKind::CannotCombine), nullptr) << changed.all_lines();
}

TEST(SemaValues, BoundsThatAreNotProvedAreCheckedBeforeLaunch) {
  EXPECT_DUMP("let x = g[2..5]", "check 5 <= n, \"the slice ends at most at n\"");
  EXPECT_DUMP("let x = top_k(g, 10)", "check 10 <= n");
  EXPECT_DUMP("let x = reshape(g, 8, n / 8)", "check ");
  EXPECT_FALSE(contains(dumped("let x = g[0..n]"), "check "));
  EXPECT_FALSE(contains(dumped("let x = unchunk(chunk(g, 7), n)"), "check "));
}

TEST(SemaValues, BoundsOfCountedArraysAreAsserted) {
  EXPECT_DUMP("let x = top_k(filter(g, where: g > 0), 10)", "assert 10 <= count0_bool");
}

TEST(SemaValues, HostArithmeticTakesWhatItIsGiven) {
  EXPECT_DUMP("let mut x = sign(true) + abs(false)", "= 1_i32");
  EXPECT_DUMP("let mut x = select(true, 1, 2.5)", "= 1_f32");
  const Checked checked = check(in_encode("let x = select(1, 2, 3)\nlet y = !0.5"));
  EXPECT_EQ(checked.sink->num_errors(), 2u) << checked.all_lines();
}

TEST(SemaValues, SizesThatGrowFastEndSoon) {
  std::string items = "size a0 = n + 1\n";
  for (int i = 1; i < 200; ++i) {
    items += fmt::format("size a{0} = max(a{1} * a{1}, a{1} + 1)\n", i, i - 1);
  }
  EXPECT_EQ(check(in_encode("let x = fill(0, min(a199, 3))", items)).all_lines(), "");
}

TEST(SemaValues, ConstantConditionsKeepOneBranchWhole) {
  const std::string text = dumped("let mut x = 1.0\nif 1 < 2 {\nx = 2.0\nx\n} else { x = 3.0 }");
  EXPECT_TRUE(contains(text, "x.0 = 2_f32")) << text;
  EXPECT_FALSE(contains(text, "3_f32")) << text;
}

TEST(SemaValues, LoopVariablesIndexAndSlice) {
  EXPECT_DUMP("let mut s = 0.0\nfor i in 0..n { s = s + g[i] }", "gradient[i.1 in_bounds]");
  EXPECT_DUMP("let mut s = 0.0\nfor i in 0..4 { s = s + sum(g[i * 2..i * 2 + 2]) }",
              "[from mul(i.1, 2_i64)]: [f32; 2]");
  EXPECT_DUMP("let mut s = 0.0\nfor i in 0..4 { s = s * i }", "mul(s.0, convert<f32>(i.1))");
}

TEST(SemaValues, LambdasSeeNamesAndTables) {
  EXPECT_DUMP("let t = 0.5\nlet x = map(g, |a| if a > t { a } else { 0 })", "map(gradient, |a.0|");
  EXPECT_DUMP("let x = map(g, |a| [1.0, 2.0, 4.0][argmax([1.0, 2.0, 4.0] - a)])", "argmax(");
  EXPECT_DUMP("let x = reduce(g as u8, 0, |a, b| a | b)", "reduce(convert<i32>");
}

TEST(SemaValues, FnsAreInlinedWithSizesOfTheirOwn) {
  const std::string text =
      "fn normal_of(x: [f32; m]) -> [f32; m] { x / norm2(x) }\n" +
      in_encode("let a = normal_of(g)\nlet b = normal_of(g[0..1])\nlet x = sum(a) + sum(b)");
  EXPECT_EQ(check(text).all_lines(), "");
}

TEST(SemaValues, ConstantsAreArraysToo) {
  const std::string text =
      "const table = sort([3.0, 1.0, 2.0])\nconst last = table[2]\nconst twice = [1, 2, 3] * 2\n" +
      in_encode("let x = g * last + twice[1]\nlet y = table[bitcast<u32>(g) & 1]");
  EXPECT_EQ(check(text).all_lines(), "");
}

TEST(SemaValues, MatrixIndicesLookUpTablesAndRows) {
  EXPECT_DUMP("let x = chunk(g, 4)\nlet i = top_k(abs(x), 2, axis: 1)\nlet y = x[i]", "reshape(");
  EXPECT_DUMP("let code = chunk(g, 4) as u2\nlet y = [1.0, 2.0, 3.0, 4.0][code]", "in_bounds]");
}

}  // namespace
}  // namespace cinch::sema
