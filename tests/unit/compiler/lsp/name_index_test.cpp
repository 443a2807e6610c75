// Which declaration a name means, by line and column of both.
#include "compiler/lsp/name_index.h"

#include <gtest/gtest.h>

#include <string>

#include "dsl/syntax/syntax.h"

namespace cinch::lsp {
namespace {

struct Indexed {
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  sema::FileUnit unit;
  NameIndex names;

  explicit Indexed(const std::string& text) {
    unit.source = &sources.add("test", text);
    unit.tree = dsl::parse(*unit.source, sink);
    names = index_names(unit, unit);
  }

  // "line:column" of the declaration of the name at a line and column; "" if there is none.
  std::string meaning(std::uint32_t line, std::uint32_t column) const {
    std::string found;
    for (const NameUse& use : names.uses_at(unit.source->line_begin(line) + column - 1)) {
      const dsl::LineColumn place = unit.source->position(use.declared.name.begin);
      found += (found.empty() ? "" : " ") + std::to_string(place.line) + ":" +
               std::to_string(place.column);
    }
    return found;
  }
};

TEST(NameIndexTest, FollowsScopes) {
  const Indexed file(
      "fn f(x: f32) -> f32 {\n"
      "  let a = x\n"
      "  let b = { let a = x + a; a }\n"
      "  map(a, |a| a + b)\n"
      "}\n");
  EXPECT_EQ(file.meaning(2, 11), "1:6");  // x
  EXPECT_EQ(file.meaning(3, 25), "2:7");  // a before the inner one
  EXPECT_EQ(file.meaning(3, 28), "3:17");
  EXPECT_EQ(file.meaning(4, 7), "2:7");    // the operand
  EXPECT_EQ(file.meaning(4, 14), "4:11");  // the lambda's own
  EXPECT_EQ(file.meaning(4, 18), "3:7");
}

TEST(NameIndexTest, FollowsLoops) {
  const Indexed file(
      "fn f(x: f32) -> f32 {\n"
      "  let mut a = x\n"
      "  for i in 0..4 { a = a + i }\n"
      "  while a < x, at_most: 3 { a += i }\n"
      "  a\n"
      "}\n");
  EXPECT_EQ(file.meaning(3, 19), "2:11");
  EXPECT_EQ(file.meaning(3, 27), "3:7");
  EXPECT_EQ(file.meaning(4, 34), "");  // `i` is unknown here
}

TEST(NameIndexTest, KnowsWhatACompressorHolds) {
  const Indexed file(
      "compressor a(ratio: f32 = 1) {\n"
      "  size k = ratio * n\n"
      "  state s: [f32; k] = 0\n"
      "  wire { count m <= k, v: [f32; m], s: [f32; m] }\n"
      "  encode(g: [f32; n]) { wire { v: s[0..k], s } }\n"
      "  decode(w) { w.v + w.s + m + s }\n"
      "  claims conserves(s)\n"
      "}\n");
  EXPECT_EQ(file.meaning(2, 12), "1:14");
  EXPECT_EQ(file.meaning(3, 18), "2:8");
  EXPECT_EQ(file.meaning(4, 33), "4:16");      // m, a count
  EXPECT_EQ(file.meaning(5, 32), "4:24");      // the field v
  EXPECT_EQ(file.meaning(5, 35), "3:9");       // the state s
  EXPECT_EQ(file.meaning(5, 44), "4:37 3:9");  // a shorthand: the field, and the state
  EXPECT_EQ(file.meaning(6, 17), "4:24");
  EXPECT_EQ(file.meaning(6, 27), "4:16");
  EXPECT_EQ(file.meaning(7, 20), "3:9");
}

TEST(NameIndexTest, KnowsSizesOfSignatures) {
  const Indexed file(
      "const B = 4\n"
      "fn f(x: [f32; m], y: [f32; B]) -> [f32; m] { fill(x[0], m) }\n");
  EXPECT_EQ(file.meaning(2, 41), "2:15");
  EXPECT_EQ(file.meaning(2, 28), "1:7");
  EXPECT_EQ(file.meaning(2, 57), "2:15");
}

TEST(NameIndexTest, LetsAFnOfTheFileHideAnOperator) {
  const Indexed file("fn abs(x: f32) -> f32 { x }\nfn g(x: f32) -> f32 { abs(x) + sqrt(x) }\n");
  EXPECT_EQ(file.meaning(2, 23), "1:4");
  EXPECT_EQ(file.meaning(2, 32), "");
  ASSERT_EQ(file.names.words.size(), 1u);
  EXPECT_EQ(file.names.words[0].kind, WordKind::Operator);
}

TEST(NameIndexTest, KnowsWordsThatAParameterTakes) {
  const Indexed file(
      "compressor a(fit: {fast, exact} = fast) {\n"
      "  size k = if fit == exact { n } else { 1 }\n"
      "}\n");
  EXPECT_EQ(file.meaning(1, 35), "1:20");
  EXPECT_EQ(file.meaning(2, 22), "1:26");
}

TEST(NameIndexTest, KnowsParametersThatAreGiven) {
  const Indexed file(
      "compressor a(ratio: f32 = 1, inner: compressor) { wire inner.wire }\n"
      "compressor b(r2: f32 = 1) = a(ratio: r2, inner: b)\n");
  EXPECT_EQ(file.meaning(2, 31), "1:14");
  EXPECT_EQ(file.meaning(2, 38), "2:14");
  EXPECT_EQ(file.meaning(1, 57), "1:30");
}

}  // namespace
}  // namespace cinch::lsp
