// format(): the tree tells where groups, breaks and indents are, the cursor supplies tokens and
// comments. The layout depends on the tree alone, except for comments and for single blank lines
// between statements. One class over all node kinds, a few lines each: longer than most files for
// that reason alone.
#include "dsl/syntax/layout_stream.h"
#include "dsl/syntax/names.h"
#include "dsl/syntax/syntax.h"
#include "dsl/syntax/token_cursor.h"
#include "dsl/syntax/token_layout.h"

namespace cinch::dsl {

namespace {

constexpr std::size_t kWidth = 100;

using Gap = TokenCursor::Gap;

class Printer {
 public:
  Printer(const SourceBuffer& source, TokenStream stream, const ast::Module& module)
      : m_(module), cursor_(source, std::move(stream), out_) {}

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
  // ---- small words

  void take() { cursor_.take(); }
  void take(std::string_view text) { cursor_.take(text); }
  void space() { out_.op(LayoutOp::Space); }
  void line() { out_.op(LayoutOp::Line); }

  template <class Body>
  void group(Body body) {
    out_.op(LayoutOp::Begin);
    body();
    out_.op(LayoutOp::End);
  }

  // `open`, content, `close`, with the content indented and breaks of one kind at both ends.
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

  // The elements of a list, each printed by `print`, with `, ` and possible breaks between them.
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

  static bool has_body(const ast::Decl& node) {
    return std::holds_alternative<ast::Compressor>(node.node) ||
           std::holds_alternative<ast::Fn>(node.node);
  }

  // ---- declarations

  void decl(const ast::Import& node) {
    take("import");
    space();
    take();
    path(node.path.size());
  }
  // Names between points; the first is printed.
  void path(std::size_t length) {
    for (std::size_t i = 1; i < length; ++i) {
      take(".");
      take();
    }
  }
  void decl(const ast::Const& node) {
    take("const");
    space();
    take();
    value(node.value);
  }
  void decl(const ast::Fn& node) {
    take("fn");
    space();
    take();
    params(node.params);
    result(node.result);
    space();
    method_block(node.body);
  }
  void decl(const ast::ExternFn& node) {
    take("extern");
    space();
    take("fn");
    space();
    take();
    params(node.params);
    result(node.result);
    space();
    take("from");
    space();
    take();
  }
  void decl(const ast::Compressor& node) {
    take("compressor");
    space();
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
    take("compressor");
    space();
    take();
    if (cursor_.is_next("(")) params(node.params);
    value(node.value);
  }

  void result(ast::TypeId id) {
    space();
    take("->");
    space();
    type(id);
  }

  // ` = e`.
  void value(ast::ExprId id) {
    space();
    take("=");
    space();
    expr(id);
  }

  void params(ast::IdRange<ast::ParamId> range) {
    if (range.is_empty()) {
      take("(");
      return take(")");
    }
    group([&] {
      brackets("(", LayoutOp::SoftLine, ")",
               [&] { commas(range, [&](ast::ParamId id) { param(m_[id]); }); });
    });
  }

  void param(const ast::Param& node) {
    if (node.is_const) {
      take("const");
      space();
    }
    take();
    if (node.type) typed(node.type);
    if (node.initial) value(node.initial);
    if (node.range) in_interval(node.range);
  }

  // `: T`.
  void typed(ast::TypeId id) {
    take(":");
    space();
    type(id);
  }

  // ` in a..b`.
  void in_interval(ast::IntervalId id) {
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

  // ---- items

  void item(const ast::Const& node) { decl(node); }
  void item(const ast::SizeItem& node) {
    take("size");
    space();
    take();
    value(node.value);
  }
  void item(const ast::SetItem& node) {
    take("set");
    space();
    take();
    path(node.path.size());
    value(node.value);
  }
  void item(const ast::StateItem& node) {
    take("state");
    space();
    take();
    typed(node.type);
    value(node.initial);
  }
  void item(const ast::WireItem& node) {
    take("wire");
    space();
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
    take("claims");
    space();
    group([&] { commas(node.claims, [&](ast::ExprId id) { expr(id); }); });
  }

  void entry(const ast::WireCount& node) {
    take("count");
    space();
    take();
    space();
    take("<=");
    space();
    expr(node.bound);
  }
  void entry(const ast::WireField& node) {
    take();
    if (!node.inner.text.empty()) {
      take(":");
      space();
      take();
      take(".");
      return take("wire");
    }
    typed(node.type);
    if (node.below) packing(node);
    if (node.aggregation == ast::Aggregation::None) return;
    space();
    take("by");
    space();
    take();
  }

  void packing(const ast::WireField& node) {
    space();
    if (node.is_elias) {
      take("elias");
      space();
    }
    if (node.is_ascending) {
      take("ascending");
      space();
    }
    take("below");
    space();
    expr(node.below);
  }

  // ---- blocks

  void empty_block() {
    group([&] { brackets("{", LayoutOp::SoftLine, "}", [] {}); });
  }

  // One element that is short by nature: such a block may stand on one line.
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

  void method_block(ast::BlockId id) {
    group([&] { block(id); });
  }

  // A simple block breaks with the group around it, all others break always.
  void block(ast::BlockId id) {
    const ast::Block& node = m_[id];
    if (node.stmts.is_empty() && !node.value) return empty_block();
    brackets("{", is_simple(node) ? LayoutOp::Line : LayoutOp::HardLine, "}",
             [&] { elements(node); });
  }

  void loop_block(ast::BlockId id) {
    const ast::Block& node = m_[id];
    if (node.stmts.is_empty() && !node.value) return empty_block();
    brackets("{", LayoutOp::HardLine, "}", [&] { elements(node); });
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

  // ---- statements

  void stmt(const ast::Let& node) {
    take("let");
    space();
    if (node.is_mutable) {
      take("mut");
      space();
    }
    take();
    value(node.value);
  }
  void stmt(const ast::LetTuple& node) {
    take("let");
    space();
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
    take("for");
    space();
    take();
    in_interval(node.bounds);
    space();
    loop_block(node.body);
  }
  void stmt(const ast::While& node) {
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
  void stmt(const ast::Assert& node) {
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
  void stmt(const ast::ExprStmt& node) { expr(node.expr); }

  // ---- expressions

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
      take(":");
      space();
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
    group([&] {
      brackets("[", LayoutOp::SoftLine, "]",
               [&] { commas(indices, [&](ast::ExprId id) { expr(id); }); });
    });
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
  // Leaves one Indent open: it starts behind the first operand, which may begin a line itself.
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
    space();
    take("as");
    space();
    type(node.type);
  }
  void print(const ast::Lambda& node) {
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
  void print(const ast::ArrayLiteral& node) {
    group([&] {
      brackets("[", LayoutOp::SoftLine, "]",
               [&] { commas(node.elements, [&](ast::ExprId id) { expr(id); }); });
    });
  }
  void print(const ast::Tuple& node) {
    group([&] {
      brackets("(", LayoutOp::SoftLine, ")",
               [&] { commas(node.elements, [&](ast::ExprId id) { expr(id); }); });
    });
  }
  void print(const ast::WireLiteral& node) {
    take("wire");
    space();
    if (node.fields.is_empty()) return empty_block();
    group([&] {
      brackets("{", LayoutOp::Line, "}",
               [&] { commas(node.fields, [&](ast::FieldInitId id) { field(m_[id]); }); });
    });
  }
  void field(const ast::FieldInit& node) {
    take();
    if (node.is_shorthand) return;
    take(":");
    space();
    expr(node.value);
  }

  // All branches of a chain of `else if` stand on one line, or none.
  void print(const ast::If& node) {
    group([&] { branches(node); });
  }
  void branches(const ast::If& node) {
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
  void print(const ast::BlockExpr& node) { method_block(node.block); }
  void print(const ast::Paren& node) {
    group([&] { brackets("(", LayoutOp::SoftLine, ")", [&] { expr(node.inner); }); });
  }

  // ---- types

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
    group([&] {
      brackets("(", LayoutOp::SoftLine, ")",
               [&] { commas(node.elements, [&](ast::TypeId id) { type(id); }); });
    });
  }
  void print(const ast::EnumType& node) {
    group([&] { brackets("{", LayoutOp::SoftLine, "}", [&] { words(node.names); }); });
  }
  // Names between commas.
  void words(const std::vector<ast::Name>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) {
        take(",");
        line();
      }
      take();
    }
  }
  void print(const ast::CompressorType&) { take("compressor"); }

  const ast::Module& m_;
  LayoutStream out_;
  TokenCursor cursor_;
};

}  // namespace

std::string format(const SourceBuffer& source, const ast::Module& module) {
  // parse() has reported what there is to report; the text is the same.
  DiagSink ignored;
  TokenStream stream = lay_out(lex(source, ignored), ignored);
  return Printer(source, std::move(stream), module).run();
}

}  // namespace cinch::dsl
