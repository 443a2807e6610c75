// The canonical layout: prints a file's tree anew, with the file's own tokens and comments. One
// class prints expressions, types and items, which call each other.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dsl/syntax/layout_stream.h"
#include "dsl/syntax/syntax.h"
#include "dsl/syntax/token.h"
#include "dsl/syntax/token_cursor.h"
#include "runtime/core/check.h"

namespace cinch::dsl {
namespace {

constexpr std::size_t kWidth = 100;

class Printer {
 public:
  Printer(const SourceBuffer& source, TokenStream stream, const ast::Module& module)
      : m_(module), cursor_(source, std::move(stream), out_) {}

  /// The text of the file.
  std::string run() {
    bool was_long = true;
    for (const ast::DeclId id : m_.decls) {
      const bool is_long = has_body(m_[id]);
      const bool is_first = id == m_.decls.front();
      out_.op(LayoutOp::HardLine);
      cursor_.set_gap(!is_first && (is_long || was_long) ? Gap::Open : Gap::Keep);
      std::visit([&](const auto& node) { decl(node); }, m_[id].node);
      was_long = is_long;
    }
    out_.op(LayoutOp::HardLine);
    cursor_.finish();
    return out_.render(kWidth);
  }

 private:
  using Gap = TokenCursor::Gap;

  // ---- tokens with their comments, groups, breaks and lists

  /// Any next token.
  void take() { cursor_.take(); }
  /// The next token, which must be this one.
  void take(std::string_view text) { cursor_.take(text); }
  void space() { out_.op(LayoutOp::Space); }
  /// The same with a blank behind it, or on both sides.
  void take_and_space(std::string_view text) {
    take(text);
    space();
  }
  void take_with_spaces(std::string_view text) {
    space();
    take_and_space(text);
  }
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

  /// The same in brackets, as a group.
  template <class IdType, class Print>
  void bracket_list(std::string_view open, std::string_view close, ast::IdRange<IdType> range,
                    Print print) {
    group([&] { brackets(open, LayoutOp::SoftLine, close, [&] { commas(range, print); }); });
  }

  /// The elements of a list, as many in a line as fit.
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

  // ---- expressions and types

  /// ` = e`.
  void value(ast::ExprId id) {
    take_with_spaces("=");
    expr(id);
  }

  /// `: T`.
  void typed(ast::TypeId id) {
    take_and_space(":");
    type(id);
  }

  /// ` in a..b`.
  void in_interval(ast::IntervalId id) {
    const ast::Interval& node = m_[id];
    take_with_spaces("in");
    if (node.is_bracketed) take();
    expr(node.lo);
    take();
    if (node.is_bracketed) space();
    expr(node.hi);
    if (node.is_bracketed) take();
  }

  void expr(ast::ExprId id) {
    std::visit([&](const auto& node) { print(node); }, m_[id].node);
  }

  void print(const ast::ErrorExpr&) {}
  void print(const ast::Literal&) { take(); }
  void print(const ast::NameRef&) { take(); }
  void print(const ast::FieldRef& node) {
    expr(node.base);
    take(".");
    take();
  }
  void print(const ast::Call& node) {
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

  void arg(const ast::Arg& node) {
    if (!node.label.text.empty()) {
      take();
      take_and_space(":");
    }
    expr(node.value);
  }

  void print(const ast::Bitcast& node) {
    take("bitcast");
    take("<");
    type(node.type);
    take(">");
    group([&] { brackets("(", LayoutOp::SoftLine, ")", [&] { expr(node.operand); }); });
  }
  void print(const ast::Index& node) {
    expr(node.base);
    index_list(node.indices);
  }

  void index_list(ast::IdRange<ast::ExprId> indices) {
    bracket_list("[", "]", indices, [&](ast::ExprId id) { expr(id); });
  }

  void print(const ast::Range& node) {
    if (node.lo) expr(node.lo);
    take();
    if (node.hi) expr(node.hi);
  }
  void print(const ast::Unary& node) {
    take();
    expr(node.operand);
  }

  // Operators of one precedence break together, each at the end of its line.
  void print(const ast::Binary& node) {
    group([&] {
      chain(node);
      out_.op(LayoutOp::Dedent);
    });
  }

  // Leaves one Indent open. It starts after the first operand, which may begin a line itself.
  void chain(const ast::Binary& node) {
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

  void print(const ast::Cast& node) {
    expr(node.operand);
    take_with_spaces("as");
    type(node.type);
  }
  void print(const ast::Lambda& node) {
    take("|");
    for (std::size_t i = 0; i < node.params.size(); ++i) {
      if (i > 0) {
        take_and_space(",");
      }
      take();
    }
    take_and_space("|");
    expr(node.body);
  }
  void print(const ast::ArrayLiteral& node) {
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
  void print(const ast::Tuple& node) {
    bracket_list("(", ")", node.elements, [&](ast::ExprId id) { expr(id); });
  }
  void print(const ast::WireLiteral& node) {
    take_and_space("wire");
    if (node.fields.is_empty()) return empty_block();
    group([&] {
      brackets("{", LayoutOp::Line, "}",
               [&] { commas(node.fields, [&](ast::FieldInitId id) { field(m_[id]); }); });
    });
  }

  void field(const ast::FieldInit& node) {
    take();
    if (node.is_shorthand) return;
    take_and_space(":");
    expr(node.value);
  }

  // All branches of a chain of `else if` are on one line, or none.
  void print(const ast::If& node) {
    group([&] { branches(node); });
  }

  void branches(const ast::If& node) {
    take_and_space("if");
    expr(node.condition);
    space();
    block(node.then);
    if (!node.otherwise) return;
    take_with_spaces("else");
    const auto& otherwise = m_[node.otherwise].node;
    if (const auto* next = std::get_if<ast::If>(&otherwise)) {
      branches(*next);
    } else if (const auto* last = std::get_if<ast::BlockExpr>(&otherwise)) {
      block(last->block);
    }
  }

  void print(const ast::BlockExpr& node) { method_block(node.block); }
  void print(const ast::Paren& node) {
    group([&] { brackets("(", LayoutOp::SoftLine, ")", [&] { expr(node.inner); }); });
  }

  void type(ast::TypeId id) {
    std::visit([&](const auto& node) { print(node); }, m_[id].node);
  }

  void print(const ast::ScalarType& node) {
    take();
    if (!node.width) return;
    take("<");
    expr(node.width);
    take(">");
  }
  void print(const ast::ArrayType& node) {
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
  void print(const ast::TupleType& node) {
    bracket_list("(", ")", node.elements, [&](ast::TypeId id) { type(id); });
  }
  void print(const ast::EnumType& node) {
    group([&] { brackets("{", LayoutOp::SoftLine, "}", [&] { words(node.names); }); });
  }
  void print(const ast::CompressorType&) { take("compressor"); }

  // Does the block have one short element, so that it may be on one line?
  bool is_simple(const ast::Block& block) const {
    if (block.value && block.stmts.is_empty()) {
      const auto& node = m_[block.value].node;
      return !std::holds_alternative<ast::If>(node) &&
             !std::holds_alternative<ast::BlockExpr>(node);
    }
    if (block.value || block.stmts.count != 1) return false;
    const auto& node = m_[m_.list(block.stmts)[0]].node;
    return std::holds_alternative<ast::Assign>(node) || std::holds_alternative<ast::Let>(node) ||
           std::holds_alternative<ast::LetTuple>(node) || std::holds_alternative<ast::Assert>(node);
  }

  /// A block that may be on one line.
  void method_block(ast::BlockId id) {
    group([&] { block(id); });
  }

  // A simple block breaks with the group around it. All other blocks, and those of loops, always
  // break.
  void block(ast::BlockId id, bool is_of_loop = false) {
    const ast::Block& node = m_[id];
    if (node.stmts.is_empty() && !node.value) return empty_block();
    const bool may_be_flat = !is_of_loop && is_simple(node);
    brackets("{", may_be_flat ? LayoutOp::Line : LayoutOp::HardLine, "}", [&] { elements(node); });
  }

  void elements(const ast::Block& node) {
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

  void stmt(const ast::Let& node) {
    take_and_space("let");
    if (node.is_mutable) {
      take_and_space("mut");
    }
    take();
    value(node.value);
  }
  void stmt(const ast::LetTuple& node) {
    take_and_space("let");
    group([&] { brackets("(", LayoutOp::SoftLine, ")", [&] { words(node.names); }); });
    value(node.value);
  }
  void stmt(const ast::Assign& node) {
    take();
    if (!node.indices.is_empty()) index_list(node.indices);
    space();
    take();
    space();
    expr(node.value);
  }
  void stmt(const ast::For& node) {
    take_and_space("for");
    take();
    in_interval(node.bounds);
    space();
    block(node.body, true);
  }
  void stmt(const ast::While& node) {
    take_and_space("while");
    expr(node.condition);
    take_and_space(",");
    take("at_most");
    take_and_space(":");
    expr(node.limit);
    space();
    block(node.body, true);
  }
  void stmt(const ast::Assert& node) {
    take_and_space("assert");
    group([&] {
      expr(node.condition);
      out_.op(LayoutOp::Indent);
      take(",");
      line();
      take();
      out_.op(LayoutOp::Dedent);
    });
  }
  void stmt(const ast::ExprStmt& node) { expr(node.expr); }

  // ---- declarations and the items of compressors

  static bool has_body(const ast::Decl& node) {
    return std::holds_alternative<ast::Compressor>(node.node) ||
           std::holds_alternative<ast::Fn>(node.node);
  }

  void decl(const ast::Import& node) {
    take_and_space("import");
    take();
    path(node.path.size());
  }

  // The further names of a path; the first one is printed already.
  void path(std::size_t length) {
    for (std::size_t i = 1; i < length; ++i) {
      take(".");
      take();
    }
  }

  void decl(const ast::Const& node) {
    take_and_space("const");
    take();
    value(node.value);
  }
  void decl(const ast::Fn& node) {
    take_and_space("fn");
    take();
    params(node.params);
    result(node.result);
    space();
    method_block(node.body);
  }
  void decl(const ast::ExternFn& node) {
    take("extern");
    take_with_spaces("fn");
    take();
    params(node.params);
    result(node.result);
    take_with_spaces("from");
    take();
  }
  void decl(const ast::Compressor& node) {
    take_and_space("compressor");
    take();
    if (cursor_.is_next("(")) params(node.params);
    space();
    if (node.items.is_empty()) return empty_block();
    brackets("{", LayoutOp::HardLine, "}", [&] {
      for (const ast::ItemId id : m_.list(node.items)) {
        out_.op(LayoutOp::HardLine);
        cursor_.set_gap(Gap::Keep);
        std::visit([&](const auto& n) { item(n); }, m_[id].node);
      }
    });
  }
  void decl(const ast::Composition& node) {
    take_and_space("compressor");
    take();
    if (cursor_.is_next("(")) params(node.params);
    value(node.value);
  }

  // ` -> T`.
  void result(ast::TypeId id) {
    take_with_spaces("->");
    type(id);
  }

  void params(ast::IdRange<ast::ParamId> range) {
    if (range.is_empty()) {
      take("(");
      return take(")");
    }
    bracket_list("(", ")", range, [&](ast::ParamId id) { param(m_[id]); });
  }

  void param(const ast::Param& node) {
    if (node.is_const) {
      take_and_space("const");
    }
    take();
    if (node.type) typed(node.type);
    if (node.initial) value(node.initial);
    if (node.range) in_interval(node.range);
  }

  void item(const ast::Const& node) { decl(node); }
  void item(const ast::SizeItem& node) {
    take_and_space("size");
    take();
    value(node.value);
  }
  void item(const ast::SetItem& node) {
    take_and_space("set");
    take();
    path(node.path.size());
    value(node.value);
  }
  void item(const ast::StateItem& node) {
    take_and_space("state");
    take();
    typed(node.type);
    value(node.initial);
  }
  void item(const ast::InputItem& node) {
    take_and_space("input");
    take();
    typed(node.type);
    if (node.range) in_interval(node.range);
  }
  void item(const ast::WireItem& node) {
    take_and_space("wire");
    if (node.is_inherited()) {
      take();
      take(".");
      return take("wire");
    }
    if (node.entries.is_empty()) return empty_block();
    group([&] {
      brackets("{", LayoutOp::Line, "}", [&] {
        commas(node.entries, [&](ast::WireEntryId id) {
          std::visit([&](const auto& n) { entry(n); }, m_[id].node);
        });
      });
    });
  }
  void item(const ast::Method& node) {
    take();
    params(node.params);
    space();
    method_block(node.body);
  }
  void item(const ast::Claims& node) {
    take_and_space("claims");
    group([&] { commas(node.claims, [&](ast::ExprId id) { expr(id); }); });
  }
  void item(const ast::Again& node) {
    take_and_space("again");
    if (node.is_shared) {
      take_and_space("shared");
    }
    group([&] { expr(node.carrier); });
  }

  void entry(const ast::WireCount& node) {
    take_and_space("count");
    take();
    take_with_spaces("<=");
    expr(node.bound);
  }
  void entry(const ast::WireField& node) {
    take();
    if (!node.inner.text.empty()) {
      take_and_space(":");
      take();
      take(".");
      return take("wire");
    }
    typed(node.type);
    if (node.below) packing(node);
    if (!node.table.text.empty()) {
      space();
      take("huffman");
      take("(");
      take();
      take(")");
    }
    if (node.aggregation == ast::Aggregation::None) return;
    take_with_spaces("by");
    take();
  }

  void packing(const ast::WireField& node) {
    space();
    if (node.is_elias) {
      take_and_space("elias");
    }
    if (node.is_ascending) {
      take_and_space("ascending");
    }
    take_and_space("below");
    expr(node.below);
  }

  const ast::Module& m_;
  LayoutStream out_;
  TokenCursor cursor_;
};

}  // namespace

std::string format(const SourceBuffer& source, const ast::Module& module) {
  // parse() has already reported all mistakes in this text.
  DiagSink ignored;
  TokenStream stream = lay_out(lex(source, ignored), ignored);
  return Printer(source, std::move(stream), module).run();
}

}  // namespace cinch::dsl
