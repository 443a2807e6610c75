// The text form: printing and parsing are inverses, and bad text is an error with its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "tests/unit/compiler/ir/all_ops.h"

namespace cinch::ir {
namespace {

using testing::HasSubstr;

Program parsed(std::string_view text) {
  rt::Result<Program> program = parse(text);
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

TEST(Text, RoundTripsEveryOp) {
  const std::string once = print(parsed(kAllOps));
  EXPECT_EQ(once, kAllOps);
  EXPECT_EQ(print(parsed(once)), once);
}

TEST(Text, SampleHoldsEveryOpKind) {
  const Program program = parsed(kAllOps);
  std::set<OpKind> seen;
  for (const Function& function : program.functions) {
    for (const Op& op : function.ops) seen.insert(op.kind);
  }
  for (int i = 0; i < kNumOpKinds; ++i) {
    EXPECT_TRUE(seen.count(static_cast<OpKind>(i))) << op_info(static_cast<OpKind>(i)).name;
  }
}

TEST(Text, SampleIsSound) {
  EXPECT_EQ(find_fault(parsed(kAllOps)), std::nullopt);
}

TEST(Text, EveryScalarOpHasAName) {
  for (int i = 0; i < kNumScalarOps; ++i) {
    const ScalarOpInfo& info = scalar_op_info(static_cast<ScalarOp>(i));
    std::string text = "name=\"p\"\naggregation=gather\ndecode {\n";
    text += "  %0: f32 = const_scalar {value=0}\n  %1: f32 = map." + std::string(info.name) + " %0";
    for (int k = 1; k < info.arity; ++k) text += ", %0";
    text += "\n  yield\n  results\n}\n";
    EXPECT_EQ(print(parsed(text)), text);
  }
}

TEST(Text, HostExpressionsKeepTheirTypes) {
  const std::string text =
      "name=\"p\"\nparams[0] {name=\"x\", dtype=f32, default=1}\n"
      "sizes[0] {name=\"a\", value=int((f64(n) * x) + 0.1d)}\n"
      "sizes[1] {name=\"b\", value=select(lt(f64(n), 2.5d), a, -3)}\n"
      "sizes[2] {name=\"d\", value=bits(f64, 0x7ff0000000000000) * f64(n)}\n"
      "sizes[3] {name=\"e\", value=(n + 1) * (n - 2)}\n"
      "sizes[4] {name=\"f\", value=align_up(n, 64) - (2 * (n - 1))}\naggregation=gather\n";
  EXPECT_EQ(print(parsed(text)), text);
}

TEST(Text, CompactionKeepsTheText) {
  Program program = parsed(kAllOps);
  for (Function& function : program.functions) compact(function);
  EXPECT_EQ(print(program), kAllOps);
}

TEST(Text, ErrorsNameLineAndColumn) {
  const auto message = [](std::string_view text) {
    const rt::Result<Program> program = parse(text);
    return program ? std::string("no error") : program.error().message;
  };
  EXPECT_EQ(message("name=p\nsizes {value=q}"), "line 2, column 15: unknown size 'q'");
  EXPECT_THAT(message("decode {\n  %0: f32 = sqrrt %1\n"), HasSubstr("unknown op 'sqrrt'"));
  EXPECT_THAT(message("decode { %0: f32 = map.neg %1"), HasSubstr("%1 is not defined"));
  EXPECT_THAT(message("decode { %0: f32 = const_scalar {value=1} %0: f32 = const_scalar {value=1}"),
              HasSubstr("%0 is defined twice"));
  EXPECT_THAT(message("decode { %0: q32"), HasSubstr("unknown type"));
  EXPECT_THAT(message("decode { results } decode { results }"), HasSubstr("a second 'decode'"));
  EXPECT_THAT(message("name=\"abc"), HasSubstr("does not end"));
  EXPECT_THAT(message("sizes {value=" + std::string(10000, '(')), HasSubstr("too deeply"));
}

TEST(Text, EveryPrefixIsHandled) {
  for (std::size_t length = 0; length < kAllOps.size(); length += 3) {
    parse(kAllOps.substr(0, length));  // an error or a program, never a crash
  }
}

}  // namespace
}  // namespace cinch::ir
