// The outline of a file, and types of variables next to their names.
#include <algorithm>
#include <string>

#include "compiler/lsp/describe.h"
#include "compiler/lsp/features.h"

namespace cinch::lsp {

namespace {

// SymbolKind of the protocol.
enum class Symbol {
  Method = 6,
  Property = 7,
  Field = 8,
  Function = 12,
  Variable = 13,
  Constant = 14,
  Struct = 23,
  Operator = 25
};

Json symbol_json(const Query& query, const std::string& name, Symbol kind, Span whole,
                 Span name_span, const std::string& detail = "") {
  Json json = {{"name", name},
               {"kind", static_cast<int>(kind)},
               {"range", range_json(query.positions, whole)},
               {"selectionRange", range_json(query.positions, name_span)}};
  if (!detail.empty()) json["detail"] = detail;
  return json;
}

Json wire_fields(const Query& query, const ast::WireItem& wire) {
  const ast::Module& tree = query.analysis.root().tree;
  Json list = Json::array();
  for (std::uint32_t i = 0; i < wire.entries.count; ++i) {
    const ast::WireEntry& entry = tree[tree.wire_entries.pool[wire.entries.first + i]];
    const ast::Name& name =
        std::visit([](const auto& node) -> const ast::Name& { return node.name; }, entry.node);
    list.push_back(symbol_json(query, name.text, Symbol::Field, entry.span, name.span));
  }
  return list;
}

std::string_view method_name(ast::MethodKind kind) {
  constexpr std::string_view kNames[] = {"encode", "decode", "finish", "sync"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Null for items without a name of their own.
Json item_symbol(const Query& query, const ast::Item& item) {
  if (const auto* node = std::get_if<ast::Const>(&item.node))
    return symbol_json(query, node->name.text, Symbol::Constant, item.span, node->name.span);
  if (const auto* node = std::get_if<ast::SizeItem>(&item.node))
    return symbol_json(query, node->name.text, Symbol::Variable, item.span, node->name.span,
                       "size");
  if (const auto* node = std::get_if<ast::StateItem>(&item.node))
    return symbol_json(query, node->name.text, Symbol::Property, item.span, node->name.span,
                       "state");
  if (const auto* node = std::get_if<ast::Method>(&item.node)) {
    return symbol_json(query, std::string(method_name(node->kind)), Symbol::Method, item.span,
                       node->keyword_span);
  }
  const auto* wire = std::get_if<ast::WireItem>(&item.node);
  if (wire == nullptr) return {};
  const Span word{item.span.file, item.span.begin, item.span.begin + 4};
  Json json = symbol_json(query, "wire", Symbol::Struct, item.span, word);
  json["children"] = wire_fields(query, *wire);
  return json;
}

Json decl_symbol(const Query& query, const ast::Decl& decl) {
  const ast::Module& tree = query.analysis.root().tree;
  const ast::Name* name = sema::declared_name(decl);
  if (name == nullptr || name->span.is_empty()) return {};
  if (std::holds_alternative<ast::Const>(decl.node))
    return symbol_json(query, name->text, Symbol::Constant, decl.span, name->span);
  const auto* node = std::get_if<ast::Compressor>(&decl.node);
  if (node == nullptr) {
    const bool is_composition = std::holds_alternative<ast::Composition>(decl.node);
    return symbol_json(query, name->text, is_composition ? Symbol::Struct : Symbol::Function,
                       decl.span, name->span);
  }
  Json json = symbol_json(query, name->text, Symbol::Struct, decl.span, name->span, "compressor");
  json["children"] = Json::array();
  for (const ast::ItemId id : tree.list(node->items)) {
    if (Json item = item_symbol(query, tree[id]); !item.is_null())
      json["children"].push_back(std::move(item));
  }
  return json;
}

}  // namespace

Json document_symbols(const Query& query) {
  Json list = Json::array();
  const ast::Module& tree = query.analysis.root().tree;
  for (const ast::DeclId id : tree.decls) {
    if (Json symbol = decl_symbol(query, tree[id]); !symbol.is_null())
      list.push_back(std::move(symbol));
  }
  return list;
}

Json inlay_hints(const Query& query, std::uint32_t end) {
  constexpr int kTypeHint = 1;
  Json list = Json::array();
  for (const Declaration& decl : query.analysis.names().declarations) {
    const bool is_variable =
        decl.kind == NameKind::Variable || decl.kind == NameKind::MutableVariable;
    const Span name = decl.name.span;
    if (!is_variable || name.end < query.offset || name.end > end) continue;
    const std::string* type = query.analysis.types().find(name);
    if (type == nullptr) continue;
    list.push_back({{"position", to_json(query.positions.position(name.end))},
                    {"label", ": " + *type},
                    {"kind", kTypeHint}});
  }
  return list;
}

}  // namespace cinch::lsp
