// dump() prints the tree as indented text: one line per declaration, item and statement.
// Expressions have the form (kind part part …). Spans are left out, so that two layouts of one
// program give the same text.
#include "dsl/syntax/syntax.h"

namespace cinch::dsl {

namespace {

class Dumper {
 public:
  explicit Dumper(const ast::Module& module) : m_(module) {}

  std::string run() {
    for (const ast::DeclId id : m_.decls) {
      doc(m_[id].doc);
      std::visit([&](const auto& node) { decl(node); }, m_[id].node);
    }
    return std::move(out_);
  }

 private:
  // ---- lines

  void line(const std::string& text) { out_ += std::string(2 * depth_, ' ') + text + '\n'; }

  // Puts each line of a doc comment on its own line.
  void doc(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      line("doc " + quoted(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  static std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      if (c == '\n') {
        result += "\\n";
      } else if (c == '\t') {
        result += "\\t";
      } else {
        result += c;
      }
    }
    return result + '"';
  }

  // ---- declarations

  void decl(const ast::Import& node) {
    std::string text = "import";
    for (const ast::Name& name : node.path) text += ' ' + name.text;
    line(node.is_file() ? text + ' ' + quoted(node.file) : text);
  }
  void decl(const ast::Const& node) { line("const " + node.name.text + ' ' + expr(node.value)); }
  void decl(const ast::Fn& node) {
    line("fn " + node.name.text);
    nest([&] {
      params(node.params);
      line("result " + type(node.result));
      block(node.body);
    });
  }
  void decl(const ast::ExternFn& node) {
    line("extern fn " + node.name.text + " from " + quoted(node.header));
    nest([&] {
      params(node.params);
      line("result " + type(node.result));
    });
  }
  void decl(const ast::Compressor& node) {
    line("compressor " + node.name.text);
    nest([&] {
      params(node.params);
      for (const ast::ItemId id : m_.list(node.items)) {
        doc(m_[id].doc);
        std::visit([&](const auto& n) { item(n); }, m_[id].node);
      }
    });
  }
  void decl(const ast::Composition& node) {
    line("composition " + node.name.text + ' ' + expr(node.value));
    nest([&] { params(node.params); });
  }

  void params(ast::IdRange<ast::ParamId> range) {
    for (const ast::ParamId id : m_.list(range)) {
      const ast::Param& param = m_[id];
      doc(param.doc);
      std::string text = param.is_const ? "const param " : "param ";
      text += param.name.text;
      if (param.type) text += ": " + type(param.type);
      if (param.initial) text += " = " + expr(param.initial);
      if (param.range) text += " in " + interval(param.range);
      line(text);
    }
  }

  // ---- items

  void item(const ast::Const& node) { decl(node); }
  void item(const ast::SizeItem& node) { line("size " + node.name.text + ' ' + expr(node.value)); }
  void item(const ast::SetItem& node) {
    std::string text = "set";
    for (const ast::Name& name : node.path) text += ' ' + name.text;
    line(text + " = " + expr(node.value));
  }
  void item(const ast::StateItem& node) {
    line("state " + node.name.text + ": " + type(node.type) + " = " + expr(node.initial));
  }
  void item(const ast::InputItem& node) {
    std::string text = "input " + node.name.text + ": " + type(node.type);
    if (node.range) text += " in " + interval(node.range);
    line(text);
  }
  void item(const ast::WireItem& node) {
    line(node.is_inherited() ? "wire " + node.inherited.text + ".wire" : "wire");
    nest([&] {
      for (const ast::WireEntryId id : m_.list(node.entries)) {
        doc(m_[id].doc);
        std::visit([&](const auto& n) { entry(n); }, m_[id].node);
      }
    });
  }
  void item(const ast::Method& node) {
    line(std::string(spelling(node.kind)));
    nest([&] {
      params(node.params);
      block(node.body);
    });
  }
  void item(const ast::Claims& node) { line("claims" + exprs(node.claims)); }
  void item(const ast::Again& node) {
    line((node.is_shared ? "again shared " : "again ") + expr(node.carrier));
  }

  void entry(const ast::WireCount& node) {
    line("count " + node.name.text + " <= " + expr(node.bound));
  }
  void entry(const ast::WireField& node) {
    if (!node.inner.text.empty()) {
      return line("field " + node.name.text + ": " + node.inner.text + ".wire");
    }
    std::string text = "field " + node.name.text + ": " + type(node.type);
    if (node.is_elias) text += " elias";
    if (node.is_ascending) text += " ascending";
    if (node.below) text += " below " + expr(node.below);
    if (!node.table.text.empty()) text += " huffman(" + node.table.text + ")";
    if (node.aggregation != ast::Aggregation::None) {
      text += " by " + std::string(spelling(node.aggregation));
    }
    line(text);
  }

  // ---- statements

  void block(ast::BlockId id) {
    for (const ast::StmtId stmt_id : m_.list(m_[id].stmts)) {
      std::visit([&](const auto& node) { stmt(node); }, m_[stmt_id].node);
    }
    if (m_[id].value) tail("value", m_[id].value);
  }

  void stmt(const ast::Let& node) {
    line((node.is_mutable ? "let mut " : "let ") + node.name.text + ' ' + expr(node.value));
  }
  void stmt(const ast::LetTuple& node) {
    line("let (" + joined(node.names, " ") + ") " + expr(node.value));
  }
  void stmt(const ast::Assign& node) {
    const bool is_whole = node.indices.is_empty();
    const std::string op = node.is_update ? ' ' + std::string(spelling(node.op)) + '=' : "";
    line("assign " + node.target.text + (is_whole ? "" : " [" + exprs(node.indices) + " ]") + op +
         ' ' + expr(node.value));
  }
  void stmt(const ast::For& node) {
    line("for " + node.variable.text + " in " + interval(node.bounds));
    nest([&] { block(node.body); });
  }
  void stmt(const ast::While& node) {
    line("while " + expr(node.condition) + " at_most " + (node.limit ? expr(node.limit) : "?"));
    nest([&] { block(node.body); });
  }
  void stmt(const ast::Assert& node) {
    line("assert " + expr(node.condition) + ' ' + quoted(node.message));
  }
  void stmt(const ast::ExprStmt& node) { tail("do", node.expr); }

  // Prints an `if` line by line if it is a statement or the value of a block.
  void tail(const std::string& head, ast::ExprId id) {
    if (const auto* choice = std::get_if<ast::If>(&m_[id].node)) {
      line(head + " if " + expr(choice->condition));
      nest([&] { block(choice->then); });
      if (choice->otherwise) tail("else", choice->otherwise);
    } else if (const auto* inner = std::get_if<ast::BlockExpr>(&m_[id].node)) {
      line(head + " block");
      nest([&] { block(inner->block); });
    } else {
      line(head + ' ' + expr(id));
    }
  }

  template <class Body>
  void nest(Body body) {
    ++depth_;
    body();
    --depth_;
  }

  // ---- expressions

  std::string expr(ast::ExprId id) {
    return std::visit([&](const auto& node) { return text(node); }, m_[id].node);
  }
  std::string exprs(ast::IdRange<ast::ExprId> range) {
    std::string result;
    for (const ast::ExprId id : m_.list(range)) result += ' ' + expr(id);
    return result;
  }

  std::string text(const ast::ErrorExpr&) { return "?"; }
  std::string text(const ast::Literal& node) { return node.text; }
  std::string text(const ast::NameRef& node) { return node.name.text; }
  std::string text(const ast::FieldRef& node) {
    return "(field " + expr(node.base) + ' ' + node.field.text + ')';
  }
  std::string text(const ast::Call& node) {
    std::string result = "(call " + expr(node.callee);
    for (const ast::ArgId id : m_.list(node.args)) {
      const ast::Arg& arg = m_[id];
      result += ' ' + (arg.label.text.empty() ? "" : arg.label.text + ": ") + expr(arg.value);
    }
    return result + ')';
  }
  std::string text(const ast::Bitcast& node) {
    return "(bitcast " + type(node.type) + ' ' + expr(node.operand) + ')';
  }
  std::string text(const ast::Index& node) {
    return "(index " + expr(node.base) + exprs(node.indices) + ')';
  }
  std::string text(const ast::Range& node) {
    const auto end = [&](ast::ExprId id) { return id ? expr(id) : std::string("_"); };
    return std::string(node.is_inclusive ? "(..= " : "(.. ") + end(node.lo) + ' ' + end(node.hi) +
           ')';
  }
  std::string text(const ast::Unary& node) {
    return '(' + std::string(spelling(node.op)) + ' ' + expr(node.operand) + ')';
  }
  std::string text(const ast::Binary& node) {
    return '(' + std::string(spelling(node.op)) + ' ' + expr(node.lhs) + ' ' + expr(node.rhs) + ')';
  }
  std::string text(const ast::Cast& node) {
    return "(as " + expr(node.operand) + ' ' + type(node.type) + ')';
  }
  std::string text(const ast::Lambda& node) {
    return "(lambda |" + joined(node.params, " ") + "| " + expr(node.body) + ')';
  }
  static std::string joined(const std::vector<ast::Name>& names, std::string_view between) {
    std::string result;
    for (const ast::Name& name : names) {
      if (!result.empty()) result += between;
      result += name.text;
    }
    return result;
  }
  std::string text(const ast::Tuple& node) { return "(tuple" + exprs(node.elements) + ')'; }
  std::string text(const ast::ArrayLiteral& node) { return "(array" + exprs(node.elements) + ')'; }
  std::string text(const ast::WireLiteral& node) {
    std::string result = "(wire";
    for (const ast::FieldInitId id : m_.list(node.fields)) {
      result += ' ' + m_[id].name.text + ": " + expr(m_[id].value);
    }
    return result + ')';
  }
  std::string text(const ast::If& node) {
    std::string result = "(if " + expr(node.condition) + ' ' + inline_block(node.then);
    if (node.otherwise) result += ' ' + expr(node.otherwise);
    return result + ')';
  }
  std::string text(const ast::BlockExpr& node) { return inline_block(node.block); }
  std::string text(const ast::Paren& node) { return "(paren " + expr(node.inner) + ')'; }

  // A block inside an expression: its lines, separated by `;`.
  std::string inline_block(ast::BlockId id) {
    Dumper inner(m_);
    inner.block(id);
    std::string result = "{ ";
    for (const char c : inner.out_) result += c == '\n' ? std::string("; ") : std::string(1, c);
    return result + '}';
  }

  // ---- types and intervals

  std::string type(ast::TypeId id) {
    return std::visit([&](const auto& node) { return text(node); }, m_[id].node);
  }
  std::string text(const ast::ScalarType& node) {
    return node.width ? node.name.text + '<' + expr(node.width) + '>' : node.name.text;
  }
  std::string text(const ast::ArrayType& node) {
    return '[' + type(node.element) + ';' + (node.is_any() ? " .." : exprs(node.dims)) + ']';
  }
  std::string text(const ast::TupleType& node) {
    std::string result = "(";
    for (const ast::TypeId id : m_.list(node.elements)) {
      result += (result.size() == 1 ? "" : " ") + type(id);
    }
    return result + ')';
  }
  std::string text(const ast::EnumType& node) { return '{' + joined(node.names, " ") + '}'; }
  std::string text(const ast::CompressorType&) { return "compressor"; }

  std::string interval(ast::IntervalId id) {
    const ast::Interval& node = m_[id];
    return (node.includes_lo ? '[' : '(') + expr(node.lo) + ", " + expr(node.hi) +
           (node.includes_hi ? ']' : ')');
  }

  const ast::Module& m_;
  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string dump(const ast::Module& module) {
  return Dumper(module).run();
}

}  // namespace cinch::dsl
