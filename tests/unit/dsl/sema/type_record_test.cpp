// Types of expressions and names for editors: with symbolic sizes, as they are declared.
#include "dsl/sema/sema.h"

#include <gtest/gtest.h>

#include <string>

namespace cinch::sema {
namespace {

struct Recorded {
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  TypeRecord types;
  std::string text;

  explicit Recorded(std::string program) : text(std::move(program)) {
    types.file = sources.add("main.cinch", text).id();
    check_module(sources, types.file, {}, sink, CheckDepth::Everything, {}, &types);
  }

  // The type of the first `name` after `before`.
  std::string of(const std::string& name, const std::string& before = "") const {
    const std::size_t from = before.empty() ? 0 : text.find(before) + before.size();
    const auto begin = static_cast<std::uint32_t>(text.find(name, from));
    const auto end = static_cast<std::uint32_t>(begin + name.size());
    const std::string* found = types.find({types.file, begin, end});
    return found == nullptr ? "" : *found;
  }
};

TEST(TypeRecordTest, HoldsNamesAndExpressionsWithTheirSizes) {
  const Recorded record(
      "compressor a(ratio: f32 = 0.01 in (0, 1], const bits: u32 = 4 in 1..=8) {\n"
      "  size k = clamp(ceil(ratio * n), 1, n)\n"
      "  state kept: [f32; n] = 0\n"
      "  wire { index: [u32; k], value: [f32; k] }\n"
      "  encode(g: [f32; n]) {\n"
      "    let x = g + kept\n"
      "    let index = top_k(abs(x), k)\n"
      "    kept = x\n"
      "    wire { index, value: x[index] }\n"
      "  }\n"
      "  decode(w) { scatter(w.value, at: w.index, size: n) }\n"
      "}\n");
  EXPECT_FALSE(record.sink.has_errors());
  EXPECT_EQ(record.of("ratio"), "f32");
  EXPECT_EQ(record.of("bits"), "the number 4");
  EXPECT_EQ(record.of("kept"), "[f32; n]");
  EXPECT_EQ(record.of("x", "let "), "[f32; n]");
  EXPECT_EQ(record.of("index", "let "), "[u32; k]");
  EXPECT_EQ(record.of("g + kept"), "[f32; n]");
  EXPECT_EQ(record.of("x[index]"), "[f32; k]");
  EXPECT_EQ(record.of("w.value"), "[f32; k]");
  EXPECT_EQ(record.of("w", "decode("), "a payload");
}

TEST(TypeRecordTest, HoldsTheSizesOfASignatureAndNotThoseOfACall) {
  const Recorded record(
      "compressor a {\n"
      "  wire { value: [f32; n] }\n"
      "  encode(g: [f32; n]) { wire { value: twice(g) } }\n"
      "  decode(w) { w.value }\n"
      "}\n"
      "fn twice(x: [f32; m]) -> [f32; m] {\n"
      "  let y = x + x\n"
      "  y\n"
      "}\n");
  EXPECT_FALSE(record.sink.has_errors());
  EXPECT_EQ(record.of("y", "let "), "[f32; m]");
  EXPECT_EQ(record.of("x + x"), "[f32; m]");
  EXPECT_EQ(record.of("twice(g)"), "[f32; n]");
}

TEST(TypeRecordTest, HoldsAWrapperAsItIsDeclared) {
  const Recorded record(
      "compressor rows(inner: compressor) {\n"
      "  wire inner.wire\n"
      "  encode(g: [f32; n]) {\n"
      "    let half = g[0..n / 2]\n"
      "    inner.encode(concat(half, half))\n"
      "  }\n"
      "  decode(w) { inner.decode(w) }\n"
      "}\n");
  EXPECT_EQ(record.of("half", "let "), "[f32; n / 2]");
}

TEST(TypeRecordTest, HoldsWhatIsRightInAFileWithMistakes) {
  const Recorded record(
      "fn f(x: [f32; m]) -> f32 {\n"
      "  let y = x + unknown\n"
      "  let z = sum(x)\n"
      "  let = 1\n"
      "  z\n"
      "}\n");
  EXPECT_TRUE(record.sink.has_errors());
  EXPECT_EQ(record.of("y", "let "), "");
  EXPECT_EQ(record.of("z", "let "), "f32");
}

}  // namespace
}  // namespace cinch::sema
