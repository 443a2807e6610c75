// Prints expressions, types, blocks and statements. They contain each other, so one class prints
// all.
#pragma once

#include "dsl/syntax/printer/token_writer.h"

namespace cinch::dsl {

class BodyPrinter : protected TokenWriter {
 protected:
  using TokenWriter::TokenWriter;
  ~BodyPrinter() = default;

  void expr(ast::ExprId id);
  void type(ast::TypeId id);
  /// ` = e`.
  void value(ast::ExprId id);
  /// `: T`.
  void typed(ast::TypeId id);
  /// ` in a..b`.
  void in_interval(ast::IntervalId id);
  /// A block that may be on one line.
  void method_block(ast::BlockId id);

 private:
  // expressions.cpp
  void print(const ast::ErrorExpr&);
  void print(const ast::Literal&);
  void print(const ast::NameRef&);
  void print(const ast::FieldRef& node);
  void print(const ast::Call& node);
  void arg(const ast::Arg& node);
  void print(const ast::Bitcast& node);
  void print(const ast::Index& node);
  void index_list(ast::IdRange<ast::ExprId> indices);
  bool is_number(ast::ExprId id) const;
  void print(const ast::Range& node);
  void print(const ast::Unary& node);
  // Operators of one precedence break together, each at the end of its line.
  void print(const ast::Binary& node);
  // Leaves one Indent open. It starts after the first operand, which may begin a line itself.
  void chain(const ast::Binary& node);
  void print(const ast::Cast& node);
  void print(const ast::Lambda& node);
  void print(const ast::ArrayLiteral& node);
  void print(const ast::Tuple& node);
  void print(const ast::WireLiteral& node);
  void field(const ast::FieldInit& node);
  // All branches of a chain of `else if` are on one line, or none.
  void print(const ast::If& node);
  void branches(const ast::If& node);
  void print(const ast::BlockExpr& node);
  void print(const ast::Paren& node);
  void print(const ast::ScalarType& node);
  void print(const ast::ArrayType& node);
  void print(const ast::TupleType& node);
  void print(const ast::EnumType& node);
  void print(const ast::CompressorType&);

  // statements.cpp
  // Does the block have one short element, so that it may be on one line?
  bool is_simple(const ast::Block& block) const;
  // A simple block breaks with the group around it. All other blocks always break.
  void block(ast::BlockId id);
  void loop_block(ast::BlockId id);
  void elements(const ast::Block& node);
  void stmt(const ast::Let& node);
  void stmt(const ast::LetTuple& node);
  void stmt(const ast::Assign& node);
  void stmt(const ast::For& node);
  void stmt(const ast::While& node);
  void stmt(const ast::Assert& node);
  void stmt(const ast::ExprStmt& node);
};

}  // namespace cinch::dsl
