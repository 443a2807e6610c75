// Spans of nodes, and what the tree promises to the checker.
#include "parse_fixture.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::dsl {
namespace {

// The text under the span of `const A = …`'s value.
std::string value_text(const Parsed& parsed, ast::ExprId id) {
  return std::string(parsed.source->text(parsed.module[id].span));
}

ast::ExprId first_value(const Parsed& parsed) {
  return std::get<ast::Const>(parsed.module[parsed.module.decls.at(0)].node).value;
}

TEST(TreeTest, SpansCoverWhatANodeIsMadeOf) {
  for (const std::string text :
       {"a", "a + b * c", "-a", "f(a, b)", "x[i]", "w.field", "a as int<4>", "(a)", "[1, 2]",
        "bitcast<u32>(x)", "if a { b } else { c }", "f(|x| x + 1)", "0x10", "wire { a, b: c }"}) {
    const Parsed parsed("const A =  " + text + "  // more\n");
    ASSERT_FALSE(parsed.sink.has_errors()) << parsed.errors();
    EXPECT_EQ(value_text(parsed, first_value(parsed)), text);
  }
}

TEST(TreeTest, EveryOperatorKnowsItsOwnPlace) {
  const Parsed parsed("const A = a + b * c\n");
  const auto& sum = std::get<ast::Binary>(parsed.module[first_value(parsed)].node);
  EXPECT_EQ(parsed.source->text(sum.op_span), "+");
  const auto& product = std::get<ast::Binary>(parsed.module[sum.rhs].node);
  EXPECT_EQ(parsed.source->text(product.op_span), "*");
  EXPECT_EQ(value_text(parsed, sum.rhs), "b * c");
}

TEST(TreeTest, EverySpanLiesInItsFile) {
  for (const CorpusFile& file : corpus()) {
    const Parsed parsed(file.text);
    for (const ast::Expr& expr : parsed.module.exprs.nodes) {
      EXPECT_EQ(expr.span.file, parsed.source->id());
      EXPECT_LT(expr.span.begin, expr.span.end) << file.name;
      EXPECT_LE(expr.span.end, parsed.source->size_bytes());
    }
    for (const ast::Stmt& stmt : parsed.module.stmts.nodes) {
      EXPECT_LT(stmt.span.begin, stmt.span.end) << file.name;
    }
  }
}

TEST(TreeTest, DeclarationsParametersAndItemsHaveSpans) {
  const Parsed parsed("compressor c(const a: u32 = 4 in 1..=8) {\n  size k = n\n}\n");
  const ast::Decl& decl = parsed.module[parsed.module.decls.at(0)];
  EXPECT_EQ(parsed.source->text(decl.span).substr(0, 12), "compressor c");
  EXPECT_EQ(parsed.source->text(decl.span).back(), '}');
  const auto& node = std::get<ast::Compressor>(decl.node);
  const ast::Param& param = parsed.module[parsed.module.list(node.params)[0]];
  EXPECT_EQ(parsed.source->text(param.span), "const a: u32 = 4 in 1..=8");
  EXPECT_EQ(parsed.source->text(param.name.span), "a");
  EXPECT_EQ(parsed.source->text(parsed.module[param.range].span), "1..=8");
  EXPECT_EQ(parsed.source->text(parsed.module[param.type].span), "u32");
  const ast::Item& item = parsed.module[parsed.module.list(node.items)[0]];
  EXPECT_EQ(parsed.source->text(item.span), "size k = n");
}

TEST(TreeTest, ShorthandFieldsHaveValues) {
  const Parsed parsed("const A = wire { index, value: g }\n");
  const auto& wire = std::get<ast::WireLiteral>(parsed.module[first_value(parsed)].node);
  const auto fields = parsed.module.list(wire.fields);
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_TRUE(parsed.module[fields[0]].is_shorthand);
  EXPECT_EQ(value_text(parsed, parsed.module[fields[0]].value), "index");
  EXPECT_FALSE(parsed.module[fields[1]].is_shorthand);
}

}  // namespace
}  // namespace cinch::dsl
