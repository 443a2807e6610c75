// Answers about a document: hover, declarations and uses, formatting, the outline, types beside
// names, and diagnostics.
#include <algorithm>
#include <filesystem>

#include "compiler/lsp/features.h"
#include "dsl/diag/render.h"
#include "dsl/sema/claims.h"
#include "dsl/syntax/syntax.h"
#include "runtime/core/log.h"

namespace cinch::lsp {
namespace {

std::string code_block(const std::string& text) {
  return "```cinch\n" + text + "\n```";
}

std::string paragraph(std::string_view text) {
  return text.empty() ? "" : "\n\n" + std::string(text);
}

std::string_view kind_word(NameKind kind) {
  switch (kind) {
    case NameKind::Field:
      return "a field of the payload";
    case NameKind::Count:
      return "a count of the payload";
    case NameKind::State:
      return "a state, kept per tensor across calls";
    case NameKind::Input:
      return "an input, which comes with each call";
    case NameKind::Size:
      return "a size, computed before launch";
    case NameKind::GenericSize:
      return "any size: that of the argument";
    default:
      return "";
  }
}

std::string name_text(const Query& query, const NameUse& use) {
  const Analysis& analysis = query.analysis;
  const Declaration* decl = analysis.find(use.declared);
  if (decl == nullptr) return "";
  const sema::FileUnit& unit = *use.declared.unit;
  std::string text = code_block(declaration_text(analysis, unit, *decl));
  // The value of a constant, which its text does not always show.
  const std::string* type = analysis.types().find(use.span);
  const bool is_constant = decl->kind == NameKind::Parameter || decl->kind == NameKind::Const;
  if (type != nullptr && is_constant && type->find(' ') != std::string::npos)
    text += paragraph(*type);
  text += paragraph(kind_word(decl->kind)) + paragraph(decl->doc);
  const bool is_own = &unit == &analysis.root();
  if (decl->kind == NameKind::Compressor && is_own)
    text += paragraph(compressor_text(analysis, decl->name.text));
  return text;
}

std::string word_text(const Query& query, const WordUse& word) {
  const std::string name(query.analysis.source().text(word.span));
  if (word.kind == WordKind::BuiltinName) {
    return code_block(name) + paragraph(builtin_name_meaning(name));
  }
  if (word.kind == WordKind::Operator) {
    const auto info = find_operator(name);
    return info ? code_block(info->signature) + paragraph(info->meaning) : "";
  }
  for (const sema::ClaimInfo& info : sema::all_claims()) {
    if (info.name == name) return code_block("claims " + name) + paragraph(info.meaning);
  }
  return "";
}

// The smallest typed expression that contains the offset.
std::optional<Span> expression_at(const Query& query) {
  std::optional<Span> best;
  const dsl::FileId file = query.analysis.source().id();
  for (const auto& [place, type] : query.analysis.types().types) {
    if (place.first > query.offset) break;
    const bool is_smaller = !best || place.second - place.first < best->size();
    if (query.offset < place.second && is_smaller) best = Span{file, place.first, place.second};
  }
  return best;
}

Json hover_json(const Query& query, const std::string& text, Span span) {
  if (text.empty()) return {};
  return {{"contents", markdown(text)}, {"range", range_json(query.positions, span)}};
}

}  // namespace

Json hover(const Query& query) {
  const std::string cost = cost_text(query.analysis, query.offset);
  const auto with_cost = [&](const std::string& text) {
    return text.empty() || cost.empty() ? text : text + "\n\n---\n" + cost;
  };
  const NameIndex& names = query.analysis.names();
  // For a shorthand, the value, which has a type, is described after the field.
  const std::vector<NameUse> uses = names.uses_at(query.offset);
  if (!uses.empty())
    return hover_json(query, with_cost(name_text(query, uses.back())), uses.back().span);
  if (const WordUse* word = names.word_at(query.offset))
    return hover_json(query, with_cost(word_text(query, *word)), word->span);
  const auto span = expression_at(query);
  if (!span) return {};
  const std::string& type = *query.analysis.types().find(*span);
  return hover_json(query, with_cost(code_block(type)), *span);
}

// Where a name is declared and where it is used.

namespace {

// An `import` under the cursor leads to the files that it brings in.
Json imported_files(const Query& query) {
  Json list = Json::array();
  const ast::Module& tree = query.analysis.root().tree;
  for (const ast::DeclId id : tree.decls) {
    const auto* import = std::get_if<ast::Import>(&tree[id].node);
    const Span span = tree[id].span;
    const bool is_here = span.begin <= query.offset && query.offset <= span.end;
    if (import == nullptr || !is_here) continue;
    const std::string qualifier = import->is_file()
                                      ? std::filesystem::path(import->file).stem().string()
                                      : import->path.back().text;
    for (const sema::ImportedFiles& found : query.analysis.imports().imports) {
      if (found.qualifier != qualifier) continue;
      for (const sema::FileUnit* file : found.files) {
        list.push_back(location_json(*file->source, {file->source->id(), 0, 0}));
      }
    }
  }
  return list;
}

// DocumentHighlightKind: a declaration is written to, uses are read.
constexpr int kRead = 2, kWrite = 3;

}  // namespace

Json definition(const Query& query) {
  Json list = Json::array();
  for (const NameUse& use : query.analysis.names().uses_at(query.offset)) {
    list.push_back(location_json(*use.declared.unit->source, use.declared.name));
  }
  return list.empty() ? imported_files(query) : list;
}

Json references(const Query& query, bool with_declaration) {
  Json list = Json::array();
  for (const NameUse& at : query.analysis.names().uses_at(query.offset)) {
    const std::string& home = at.declared.unit->source->name();
    bool is_declaration_found = !with_declaration;
    const auto add = [&](const Analysis& analysis, const std::vector<NameUse>& uses) {
      const bool is_home = analysis.source().name() == home;
      for (const NameUse& use : uses) {
        const bool is_declaration = is_home && use.span.begin == at.declared.name.begin;
        if (is_declaration && !with_declaration) continue;
        is_declaration_found |= is_declaration;
        list.push_back(location_json(analysis.source(), use.span));
      }
    };
    add(query.analysis, uses_in(query.analysis, at.declared));
    if (const Declaration* name = query.analysis.find(at.declared)) {
      visit_other_files(
          query, at.declared, *name,
          [&](const std::string&, const Analysis& other, const auto& uses) { add(other, uses); });
    }
    if (!is_declaration_found)
      list.push_back(location_json(*at.declared.unit->source, at.declared.name));
  }
  return list;
}

Json highlights(const Query& query) {
  Json list = Json::array();
  const NameIndex& names = query.analysis.names();
  for (const NameUse& at : names.uses_at(query.offset)) {
    for (const NameUse& use : names.uses) {
      if (use.declared != at.declared) continue;
      list.push_back({{"range", range_json(query.positions, use.span)},
                      {"kind", use.span == at.declared.name ? kWrite : kRead}});
    }
  }
  return list;
}

// Formatting: the canonical layout as one edit of the lines that differ.

namespace {

std::size_t shared_prefix(std::string_view a, std::string_view b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  const auto length = static_cast<std::size_t>(in_a - a.begin());
  // Whole lines: splits no code point and no `\r\n`.
  const std::size_t line = a.substr(0, length).rfind('\n');
  return line == std::string_view::npos ? 0 : line + 1;
}

std::size_t shared_suffix(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t length = 0;
  while (length < most && a[a.size() - 1 - length] == b[b.size() - 1 - length]) ++length;
  const std::size_t line = a.find('\n', a.size() - length);
  return line == std::string_view::npos ? 0 : a.size() - line - 1;
}

}  // namespace

Json formatting(const Document& document) {
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  const dsl::SourceBuffer& source = sources.add(document.path, document.text);
  const ast::Module module = dsl::parse(source, sink);
  if (sink.has_errors()) return {};
  const std::string laid_out = dsl::format(source, module);
  if (laid_out == document.text) return Json::array();
  std::string_view before = document.text, after = laid_out;
  const std::size_t prefix = shared_prefix(before, after);
  const std::size_t suffix = shared_suffix(before.substr(prefix), after.substr(prefix));
  const Span changed{source.id(), static_cast<std::uint32_t>(prefix),
                     static_cast<std::uint32_t>(before.size() - suffix)};
  const Json edit = {{"range", range_json(TextPositions(before), changed)},
                     {"newText", after.substr(prefix, after.size() - suffix - prefix)}};
  return Json::array({edit});
}

// The outline of a file, and types of variables next to their names.

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
  if (const auto* node = std::get_if<ast::InputItem>(&item.node))
    return symbol_json(query, node->name.text, Symbol::Property, item.span, node->name.span,
                       "input");
  if (const auto* node = std::get_if<ast::Method>(&item.node)) {
    constexpr const char* kNames[] = {"encode", "decode", "finish", "sync"};
    return symbol_json(query, kNames[static_cast<std::size_t>(node->kind)], Symbol::Method,
                       item.span, node->keyword_span);
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

// Diagnostics of the checker in the protocol's form.

namespace {

// Labels and notes with a place.
Json related_json(const Analysis& analysis, const dsl::Diagnostic& diag) {
  Json list = Json::array();
  const auto add = [&](Span span, const std::string& text) {
    const dsl::SourceBuffer* source = analysis.sources().find(span.file);
    if (source == nullptr) return;
    list.push_back(
        {{"location", location_json(*source, span)}, {"message", rt::visible_text(text)}});
  };
  for (const dsl::Label& label : diag.labels) add(label.span, label.text);
  for (const dsl::Note& note : diag.notes) {
    if (note.span) add(*note.span, note.text);
  }
  return list;
}

}  // namespace

Json diagnostic_json(const Analysis& analysis, const TextPositions& positions,
                     const dsl::Diagnostic& diag) {
  std::string text = dsl::message(diag);
  for (const dsl::Note& note : diag.notes) {
    if (!note.span) text += "\nnote: " + note.text;
  }
  if (diag.suggestion) text += "\ndid you mean `" + diag.suggestion->replacement + "`?";
  // DiagnosticSeverity of the protocol.
  const int severity = diag.severity() == dsl::Severity::Error     ? 1
                       : diag.severity() == dsl::Severity::Warning ? 2
                                                                   : 3;
  Json json = {{"severity", severity},
               {"code", diag.code()},
               {"source", "cinch"},
               {"message", rt::visible_text(text)}};
  Json related = related_json(analysis, diag);
  const dsl::SourceBuffer* source = analysis.sources().find(diag.span.file);
  Span span = diag.span;
  if (source == nullptr) {
    span = {analysis.source().id(), 0, 0};
  } else if (source != &analysis.source()) {
    // The place is in a file that this one imports.
    span = analysis.import_of(source->name()).value_or(Span{analysis.source().id(), 0, 0});
    const Json place = {{"location", location_json(*source, diag.span)},
                        {"message", "the mistake is here"}};
    related.insert(related.begin(), place);
  }
  json["range"] = range_json(positions, span);
  if (!related.empty()) json["relatedInformation"] = std::move(related);
  return json;
}

Json diagnostics(const Analysis& analysis) {
  const TextPositions positions(analysis.source().text());
  Json list = Json::array();
  const dsl::Shown shown = dsl::choose_shown(analysis.sink().all());
  for (const dsl::Diagnostic* diag : shown.diags) {
    list.push_back(diagnostic_json(analysis, positions, *diag));
  }
  return list;
}

}  // namespace cinch::lsp
