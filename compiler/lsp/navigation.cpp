// Where a name is declared and where it is used.
#include <filesystem>
#include <string>
#include <vector>

#include "compiler/lsp/features.h"
#include "compiler/lsp/protocol/json.h"

namespace cinch::lsp {

namespace {

std::string qualifier_of(const ast::Import& import) {
  if (!import.is_file()) return import.path.back().text;
  return std::filesystem::path(import.file).stem().string();
}

// An `import` under the cursor leads to the files that it brings in.
Json imported_files(const Query& query) {
  Json list = Json::array();
  const ast::Module& tree = query.analysis.root().tree;
  for (const ast::DeclId id : tree.decls) {
    const auto* import = std::get_if<ast::Import>(&tree[id].node);
    const Span span = tree[id].span;
    const bool is_here = span.begin <= query.offset && query.offset <= span.end;
    if (import == nullptr || !is_here) continue;
    for (const sema::ImportedFiles& found : query.analysis.imports().imports) {
      if (found.qualifier != qualifier_of(*import)) continue;
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

}  // namespace cinch::lsp
