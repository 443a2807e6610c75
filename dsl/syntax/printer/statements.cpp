// Blocks and statements.
#include "dsl/syntax/printer/body_printer.h"

namespace cinch::dsl {

bool BodyPrinter::is_simple(const ast::Block& block) const {
  if (block.value && block.stmts.is_empty()) {
    const auto& node = m_[block.value].node;
    return !std::holds_alternative<ast::If>(node) && !std::holds_alternative<ast::BlockExpr>(node);
  }
  if (block.value || block.stmts.count != 1) return false;
  const auto& node = m_[m_.list(block.stmts)[0]].node;
  return std::holds_alternative<ast::Assign>(node) || std::holds_alternative<ast::Let>(node) ||
         std::holds_alternative<ast::LetTuple>(node) || std::holds_alternative<ast::Assert>(node);
}

void BodyPrinter::method_block(ast::BlockId id) {
  group([&] { block(id); });
}

void BodyPrinter::block(ast::BlockId id) {
  const ast::Block& node = m_[id];
  if (node.stmts.is_empty() && !node.value) return empty_block();
  brackets("{", is_simple(node) ? LayoutOp::Line : LayoutOp::HardLine, "}",
           [&] { elements(node); });
}

void BodyPrinter::loop_block(ast::BlockId id) {
  const ast::Block& node = m_[id];
  if (node.stmts.is_empty() && !node.value) return empty_block();
  brackets("{", LayoutOp::HardLine, "}", [&] { elements(node); });
}

void BodyPrinter::elements(const ast::Block& node) {
  bool is_first = true;
  const auto start = [&] {
    if (!is_first) out_.op(LayoutOp::HardLine);
    is_first = false;
    cursor_.set_gap(Gap::Keep);
  };
  for (const ast::StmtId id : m_.list(node.stmts)) {
    start();
    std::visit([&](const auto& n) { stmt(n); }, m_[id].node);
  }
  if (!node.value) return;
  start();
  expr(node.value);
}

void BodyPrinter::stmt(const ast::Let& node) {
  take("let");
  space();
  if (node.is_mutable) {
    take("mut");
    space();
  }
  take();
  value(node.value);
}

void BodyPrinter::stmt(const ast::LetTuple& node) {
  take("let");
  space();
  group([&] { brackets("(", LayoutOp::SoftLine, ")", [&] { words(node.names); }); });
  value(node.value);
}

void BodyPrinter::stmt(const ast::Assign& node) {
  take();
  if (!node.indices.is_empty()) index_list(node.indices);
  space();
  take();
  space();
  expr(node.value);
}

void BodyPrinter::stmt(const ast::For& node) {
  take("for");
  space();
  take();
  in_interval(node.bounds);
  space();
  loop_block(node.body);
}

void BodyPrinter::stmt(const ast::While& node) {
  take("while");
  space();
  expr(node.condition);
  take(",");
  space();
  take("at_most");
  take(":");
  space();
  expr(node.limit);
  space();
  loop_block(node.body);
}

void BodyPrinter::stmt(const ast::Assert& node) {
  take("assert");
  space();
  group([&] {
    expr(node.condition);
    out_.op(LayoutOp::Indent);
    take(",");
    line();
    take();
    out_.op(LayoutOp::Dedent);
  });
}

void BodyPrinter::stmt(const ast::ExprStmt& node) {
  expr(node.expr);
}

}  // namespace cinch::dsl
