// Expressions and types.
#include <algorithm>
#include <variant>

#include "dsl/syntax/ast.h"
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

// A table of numbers takes few lines, not one for each number.
bool BodyPrinter::is_number(ast::ExprId id) const {
  const auto* sign = std::get_if<ast::Unary>(&m_[id].node);
  return std::holds_alternative<ast::Literal>(m_[sign != nullptr ? sign->operand : id].node);
}

void BodyPrinter::print(const ast::ArrayLiteral& node) {
  const auto elements = m_.list(node.elements);
  const bool is_table =
      std::all_of(elements.begin(), elements.end(), [&](ast::ExprId id) { return is_number(id); });
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

}  // namespace cinch::dsl
