// What may follow at the `|` of a text.
#include "compiler/lsp/features.h"

#include <gtest/gtest.h>

#include <string>

namespace cinch::lsp {
namespace {

PlaceContext at(std::string text) {
  const std::size_t mark = text.find('|');
  text.erase(mark, 1);
  return place_at(text, static_cast<std::uint32_t>(mark));
}

TEST(PlaceTest, TellsDeclarationsItemsAndStatements) {
  EXPECT_EQ(at("|").kind, PlaceKind::Declarations);
  EXPECT_EQ(at("const A = 1\ncomp|").kind, PlaceKind::Declarations);
  EXPECT_EQ(at("compressor a {\n  sta|\n}").kind, PlaceKind::Items);
  EXPECT_EQ(at("compressor a(x: f32 = 1 in (0, 1]) { |").kind, PlaceKind::Items);
  EXPECT_EQ(at("compressor a { encode(g: [f32; n]) {\n  |").kind, PlaceKind::Statement);
  EXPECT_EQ(at("fn f(x: f32) -> f32 { if x > 0 { |").kind, PlaceKind::Statement);
  EXPECT_EQ(at("fn f(x: f32) -> f32 { let a = |").kind, PlaceKind::Expression);
  EXPECT_EQ(at("compressor a = |").kind, PlaceKind::Expression);
}

TEST(PlaceTest, TellsFieldsOfAPayload) {
  const std::string before = "compressor a {\n  wire { v: f32, u: f32 }\n  encode(g: [f32; n]) { ";
  EXPECT_EQ(at(before + "wire { |").kind, PlaceKind::WireFields);
  EXPECT_EQ(at(before + "wire {\n    v: 1,\n    |").kind, PlaceKind::WireFields);
  EXPECT_EQ(at(before + "wire { v: 1, |u: 2 } } }").kind, PlaceKind::WireFields);
  EXPECT_EQ(at(before + "wire { v: |").kind, PlaceKind::Expression);
  EXPECT_EQ(at(before + "wire { v: max(1, |").kind, PlaceKind::Expression);
  EXPECT_EQ(at("compressor a {\n  wire { |").kind, PlaceKind::WireEntries);
}

TEST(PlaceTest, TellsTypes) {
  EXPECT_EQ(at("fn f(x: |").kind, PlaceKind::Type);
  EXPECT_EQ(at("fn f(x: [|").kind, PlaceKind::Type);
  EXPECT_EQ(at("fn f(x: f32) -> |").kind, PlaceKind::Type);
  EXPECT_EQ(at("compressor a { state s: [|").kind, PlaceKind::Type);
  EXPECT_EQ(at("compressor a { wire { v: |").kind, PlaceKind::Type);
  EXPECT_EQ(at("compressor a { encode(g: |").kind, PlaceKind::Type);
  EXPECT_EQ(at("fn f(x: f32) -> f32 { x as |").kind, PlaceKind::Type);
  // A label is followed by a value.
  EXPECT_EQ(at("compressor a = topk(ratio: |").kind, PlaceKind::Expression);
}

TEST(PlaceTest, TellsMembersImportsAndClaims) {
  EXPECT_EQ(at("compressor a { decode(w) { w.va|").base, "w");
  EXPECT_EQ(at("import std.|").path, std::vector<std::string>{"std"});
  EXPECT_EQ(at("import std.wrap.cl|").path, (std::vector<std::string>{"std", "wrap"}));
  EXPECT_EQ(at("compressor a {\n  claims unbiased, |").kind, PlaceKind::Claims);
}

TEST(PlaceTest, TellsWhichCallAnArgumentIsOf) {
  EXPECT_EQ(at("compressor a = topk(|").callee, "topk");
  EXPECT_EQ(at("compressor a = topk(ratio: 1, ra|").callee, "topk");
  EXPECT_EQ(at("compressor a = topk(ratio: |").callee, "");
  EXPECT_EQ(at("compressor a = outer(inner(x), |").callee, "outer");
}

TEST(PlaceTest, OffersNothingInCommentsStringsAndNewNames) {
  for (const char* text :
       {"// a|", "/// a |", "/* a|", "import \"a|", "fn f(x: f32) -> f32 { let |", "fn |",
        "compressor |", "fn f(|", "fn f(x: f32) -> f32 { assert x > 0, \"a |"}) {
    EXPECT_EQ(at(text).kind, PlaceKind::Nothing) << text;
  }
  EXPECT_EQ(at("// a\n|").kind, PlaceKind::Declarations);
  EXPECT_EQ(at("/* a */ |").kind, PlaceKind::Declarations);
}

}  // namespace
}  // namespace cinch::lsp
