// Expressions and types.
#include <algorithm>
#include <variant>

#include "dsl/syntax/printer/body_printer.h"

namespace cinch::dsl {
void BodyPrinter::value(ast::ExprId id) {
  space();
  take("=");
  space();
  expr(id);
}

void BodyPrinter::typed(ast::TypeId id) {
  take(":");
  space();
  type(id);
}

void BodyPrinter::in_interval(ast::IntervalId id) {
  const ast::Interval& node = m_[id];
  space();
  take("in");
  space();
  if (node.is_bracketed) take();
  expr(node.lo);
  take();
  if (node.is_bracketed) space();
  expr(node.hi);
  if (node.is_bracketed) take();
}

void BodyPrinter::expr(ast::ExprId id) {
  std::visit([&](const auto& node) { print(node); }, m_[id].node);
}

void BodyPrinter::print(const ast::ErrorExpr&) {}

void BodyPrinter::print(const ast::Literal&) {
  take();
}

void BodyPrinter::print(const ast::NameRef&) {
  take();
}

void BodyPrinter::print(const ast::FieldRef& node) {
  expr(node.base);
  take(".");
  take();
}

void BodyPrinter::print(const ast::Call& node) {
  group([&] {
    expr(node.callee);
    if (node.args.is_empty()) {
      take("(");
      return take(")");
    }
    brackets("(", LayoutOp::SoftLine, ")",
             [&] { commas(node.args, [&](ast::ArgId id) { arg(m_[id]); }); });
  });
}

void BodyPrinter::arg(const ast::Arg& node) {
  if (!node.label.text.empty()) {
    take();
    take(":");
    space();
  }
  expr(node.value);
}

void BodyPrinter::print(const ast::Bitcast& node) {
  take("bitcast");
  take("<");
  type(node.type);
  take(">");
  group([&] { brackets("(", LayoutOp::SoftLine, ")", [&] { expr(node.operand); }); });
}

void BodyPrinter::print(const ast::Index& node) {
  expr(node.base);
  index_list(node.indices);
}

void BodyPrinter::index_list(ast::IdRange<ast::ExprId> indices) {
  group([&] {
    brackets("[", LayoutOp::SoftLine, "]",
             [&] { commas(indices, [&](ast::ExprId id) { expr(id); }); });
  });
}

void BodyPrinter::print(const ast::Range& node) {
  if (node.lo) expr(node.lo);
  take();
  if (node.hi) expr(node.hi);
}

void BodyPrinter::print(const ast::Unary& node) {
  take();
  expr(node.operand);
}

void BodyPrinter::print(const ast::Binary& node) {
  group([&] {
    chain(node);
    out_.op(LayoutOp::Dedent);
  });
}

void BodyPrinter::chain(const ast::Binary& node) {
  const auto* left = std::get_if<ast::Binary>(&m_[node.lhs].node);
  if (left && precedence(left->op) == precedence(node.op)) {
    chain(*left);
  } else {
    expr(node.lhs);
    out_.op(LayoutOp::Indent);
  }
  space();
  take(spelling(node.op));
  line();
  expr(node.rhs);
}

void BodyPrinter::print(const ast::Cast& node) {
  expr(node.operand);
  space();
  take("as");
  space();
  type(node.type);
}

void BodyPrinter::print(const ast::Lambda& node) {
  take("|");
  for (std::size_t i = 0; i < node.params.size(); ++i) {
    if (i > 0) {
      take(",");
      space();
    }
    take();
  }
  take("|");
  space();
  expr(node.body);
}

void BodyPrinter::print(const ast::ArrayLiteral& node) {
  const auto elements = m_.list(node.elements);
  const bool is_table = std::all_of(elements.begin(), elements.end(), [&](ast::ExprId id) {
    const auto* sign = std::get_if<ast::Unary>(&m_[id].node);
    return std::holds_alternative<ast::Literal>(m_[sign != nullptr ? sign->operand : id].node);
  });
  const auto print = [&](ast::ExprId id) { expr(id); };
  group([&] {
    brackets("[", LayoutOp::SoftLine, "]", [&] {
      if (is_table) return filled(node.elements, print);
      commas(node.elements, print);
    });
  });
}

void BodyPrinter::print(const ast::Tuple& node) {
  group([&] {
    brackets("(", LayoutOp::SoftLine, ")",
             [&] { commas(node.elements, [&](ast::ExprId id) { expr(id); }); });
  });
}

void BodyPrinter::print(const ast::WireLiteral& node) {
  take("wire");
  space();
  if (node.fields.is_empty()) return empty_block();
  group([&] {
    brackets("{", LayoutOp::Line, "}",
             [&] { commas(node.fields, [&](ast::FieldInitId id) { field(m_[id]); }); });
  });
}

void BodyPrinter::field(const ast::FieldInit& node) {
  take();
  if (node.is_shorthand) return;
  take(":");
  space();
  expr(node.value);
}

void BodyPrinter::print(const ast::If& node) {
  group([&] { branches(node); });
}

void BodyPrinter::branches(const ast::If& node) {
  take("if");
  space();
  expr(node.condition);
  space();
  block(node.then);
  if (!node.otherwise) return;
  space();
  take("else");
  space();
  const auto& otherwise = m_[node.otherwise].node;
  if (const auto* next = std::get_if<ast::If>(&otherwise)) {
    branches(*next);
  } else if (const auto* last = std::get_if<ast::BlockExpr>(&otherwise)) {
    block(last->block);
  }
}

void BodyPrinter::print(const ast::BlockExpr& node) {
  method_block(node.block);
}

void BodyPrinter::print(const ast::Paren& node) {
  group([&] { brackets("(", LayoutOp::SoftLine, ")", [&] { expr(node.inner); }); });
}

void BodyPrinter::type(ast::TypeId id) {
  std::visit([&](const auto& node) { print(node); }, m_[id].node);
}

void BodyPrinter::print(const ast::ScalarType& node) {
  take();
  if (!node.width) return;
  take("<");
  expr(node.width);
  take(">");
}

void BodyPrinter::print(const ast::ArrayType& node) {
  group([&] {
    brackets("[", LayoutOp::SoftLine, "]", [&] {
      type(node.element);
      take(";");
      line();
      if (node.is_any()) return take("..");
      commas(node.dims, [&](ast::ExprId id) { expr(id); });
    });
  });
}

void BodyPrinter::print(const ast::TupleType& node) {
  group([&] {
    brackets("(", LayoutOp::SoftLine, ")",
             [&] { commas(node.elements, [&](ast::TypeId id) { type(id); }); });
  });
}

void BodyPrinter::print(const ast::EnumType& node) {
  group([&] { brackets("{", LayoutOp::SoftLine, "}", [&] { words(node.names); }); });
}

void BodyPrinter::print(const ast::CompressorType&) {
  take("compressor");
}

// Blocks and statements.

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
