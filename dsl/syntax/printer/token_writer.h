// The base of all printers: tokens with their comments, groups, breaks and lists.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "dsl/syntax/ast.h"
#include "dsl/syntax/layout_stream.h"
#include "dsl/syntax/token_cursor.h"

namespace cinch::dsl {

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

}  // namespace cinch::dsl
