// Prints expressions, types, blocks and statements. They contain each other, so one class prints
// all.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "dsl/syntax/ast.h"
#include "dsl/syntax/layout_stream.h"
#include "dsl/syntax/token_cursor.h"

namespace cinch::dsl {
// The base of all printers: tokens with their comments, groups, breaks and lists.

class TokenWriter {
 protected:
  using Gap = TokenCursor::Gap;

  TokenWriter(const SourceBuffer& source, TokenStream stream, const ast::Module& module)
      : m_(module), cursor_(source, std::move(stream), out_) {}
  ~TokenWriter() = default;

  /// Any next token.
  void take() { cursor_.take(); }
  /// The next token, which must be this one.
  void take(std::string_view text) { cursor_.take(text); }
  void space() { out_.op(LayoutOp::Space); }
  /// A blank, or a new line if the group breaks.
  void line() { out_.op(LayoutOp::Line); }

  /// Makes all breaks in `body`, or none.
  template <class Body>
  void group(Body body) {
    out_.op(LayoutOp::Begin);
    body();
    out_.op(LayoutOp::End);
  }

  /// `open`, content, `close`: indents the content, with the same kind of break at both ends.
  template <class Body>
  void brackets(std::string_view open, LayoutOp edge, std::string_view close, Body body) {
    take(open);
    out_.op(LayoutOp::Indent);
    out_.op(edge);
    body();
    out_.op(edge);
    out_.op(LayoutOp::Dedent);
    cursor_.close(close);
  }

  /// The elements of a list, with `, ` and possible breaks between them. `print` prints one.
  template <class IdType, class Print>
  void commas(ast::IdRange<IdType> range, Print print) {
    bool is_first = true;
    for (const IdType id : m_.list(range)) {
      if (!is_first) {
        take(",");
        line();
      }
      is_first = false;
      print(id);
    }
  }

  /// The same, as many elements in a line as fit.
  template <class IdType, class Print>
  void filled(ast::IdRange<IdType> range, Print print) {
    bool is_first = true;
    for (const IdType id : m_.list(range)) {
      if (!is_first) take(",");
      group([&] {
        if (!is_first) line();
        is_first = false;
        print(id);
      });
    }
  }

  /// Names, separated by commas.
  void words(const std::vector<ast::Name>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) {
        take(",");
        line();
      }
      take();
    }
  }

  /// `{}`.
  void empty_block() {
    group([&] { brackets("{", LayoutOp::SoftLine, "}", [] {}); });
  }

  const ast::Module& m_;
  LayoutStream out_;
  TokenCursor cursor_;
};

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

  // expressions.cpp
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
