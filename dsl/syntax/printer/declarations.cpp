// Prints declarations, the items of compressors, and a whole file.
#include <cstddef>
#include <string>

#include "dsl/syntax/printer/body_printer.h"
#include "dsl/syntax/syntax.h"

namespace cinch::dsl {
class DeclarationPrinter : BodyPrinter {
 public:
  DeclarationPrinter(const SourceBuffer& source, TokenStream stream, const ast::Module& module)
      : BodyPrinter(source, std::move(stream), module) {}

  /// The text of the file.
  std::string run();

 private:
  static bool has_body(const ast::Decl& node);
  void decl(const ast::Import& node);
  // The further names of a path; the first one is printed already.
  void path(std::size_t length);
  void decl(const ast::Const& node);
  void decl(const ast::Fn& node);
  void decl(const ast::ExternFn& node);
  void decl(const ast::Compressor& node);
  void decl(const ast::Composition& node);
  // ` -> T`.
  void result(ast::TypeId id);
  void params(ast::IdRange<ast::ParamId> range);
  void param(const ast::Param& node);
  void item(const ast::Const& node);
  void item(const ast::SizeItem& node);
  void item(const ast::SetItem& node);
  void item(const ast::StateItem& node);
  void item(const ast::WireItem& node);
  void item(const ast::Method& node);
  void item(const ast::Claims& node);
  void item(const ast::Again& node);
  void entry(const ast::WireCount& node);
  void entry(const ast::WireField& node);
  void packing(const ast::WireField& node);
};

// Declarations and the items of compressors.

namespace {

constexpr std::size_t kWidth = 100;

}  // namespace

std::string DeclarationPrinter::run() {
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

bool DeclarationPrinter::has_body(const ast::Decl& node) {
  return std::holds_alternative<ast::Compressor>(node.node) ||
         std::holds_alternative<ast::Fn>(node.node);
}

void DeclarationPrinter::decl(const ast::Import& node) {
  take("import");
  space();
  take();
  path(node.path.size());
}

void DeclarationPrinter::path(std::size_t length) {
  for (std::size_t i = 1; i < length; ++i) {
    take(".");
    take();
  }
}

void DeclarationPrinter::decl(const ast::Const& node) {
  take("const");
  space();
  take();
  value(node.value);
}

void DeclarationPrinter::decl(const ast::Fn& node) {
  take("fn");
  space();
  take();
  params(node.params);
  result(node.result);
  space();
  method_block(node.body);
}

void DeclarationPrinter::decl(const ast::ExternFn& node) {
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

void DeclarationPrinter::decl(const ast::Compressor& node) {
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

void DeclarationPrinter::decl(const ast::Composition& node) {
  take("compressor");
  space();
  take();
  if (cursor_.is_next("(")) params(node.params);
  value(node.value);
}

void DeclarationPrinter::result(ast::TypeId id) {
  space();
  take("->");
  space();
  type(id);
}

void DeclarationPrinter::params(ast::IdRange<ast::ParamId> range) {
  if (range.is_empty()) {
    take("(");
    return take(")");
  }
  group([&] {
    brackets("(", LayoutOp::SoftLine, ")",
             [&] { commas(range, [&](ast::ParamId id) { param(m_[id]); }); });
  });
}

void DeclarationPrinter::param(const ast::Param& node) {
  if (node.is_const) {
    take("const");
    space();
  }
  take();
  if (node.type) typed(node.type);
  if (node.initial) value(node.initial);
  if (node.range) in_interval(node.range);
}

void DeclarationPrinter::item(const ast::Const& node) {
  decl(node);
}

void DeclarationPrinter::item(const ast::SizeItem& node) {
  take("size");
  space();
  take();
  value(node.value);
}

void DeclarationPrinter::item(const ast::SetItem& node) {
  take("set");
  space();
  take();
  path(node.path.size());
  value(node.value);
}

void DeclarationPrinter::item(const ast::StateItem& node) {
  take("state");
  space();
  take();
  typed(node.type);
  value(node.initial);
}

void DeclarationPrinter::item(const ast::WireItem& node) {
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

void DeclarationPrinter::item(const ast::Method& node) {
  take();
  params(node.params);
  space();
  method_block(node.body);
}

void DeclarationPrinter::item(const ast::Claims& node) {
  take("claims");
  space();
  group([&] { commas(node.claims, [&](ast::ExprId id) { expr(id); }); });
}

void DeclarationPrinter::item(const ast::Again& node) {
  take("again");
  space();
  if (node.is_shared) {
    take("shared");
    space();
  }
  group([&] { expr(node.carrier); });
}

void DeclarationPrinter::entry(const ast::WireCount& node) {
  take("count");
  space();
  take();
  space();
  take("<=");
  space();
  expr(node.bound);
}

void DeclarationPrinter::entry(const ast::WireField& node) {
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

void DeclarationPrinter::packing(const ast::WireField& node) {
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

std::string format(const SourceBuffer& source, const ast::Module& module) {
  // parse() has already reported all mistakes in this text.
  DiagSink ignored;
  TokenStream stream = lay_out(lex(source, ignored), ignored);
  return DeclarationPrinter(source, std::move(stream), module).run();
}

}  // namespace cinch::dsl
