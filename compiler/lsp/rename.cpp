// Renaming. A name inside a compressor changes in its file; a name that other files can import
// changes in all Cinch files of the editor's folders. A change that would alter a program's meaning
// is rejected.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "compiler/lsp/features.h"
#include "compiler/lsp/protocol/json.h"
#include "compiler/service/program_lookup.h"
#include "dsl/sema/builtins.h"
#include "dsl/sema/module_data.h"
#include "dsl/syntax/token.h"

namespace cinch::lsp {

namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw RequestError{ErrorCode::RequestFailed, reason};
}

// Names in parts that the parser could not read would keep the old name.
bool has_syntax_errors(const Analysis& analysis) {
  return std::ranges::any_of(analysis.sink().all(), [&](const dsl::Diagnostic& diag) {
    const bool is_of_syntax = diag.code().front() == 'L' || diag.code().front() == 'P';
    return is_of_syntax && diag.span.file == analysis.source().id();
  });
}

// The name under the cursor. For `value` in `wire { value }` that of the value: the field keeps its
// name.
NameUse name_to_change(const Query& query) {
  if (has_syntax_errors(query.analysis)) refuse("the text has syntax errors");
  const auto uses = query.analysis.names().uses_at(query.offset);
  if (uses.empty()) refuse("no name of the program is here");
  const NameUse use = uses.back();
  const std::string library = service::stdlib_folder();
  const std::string& file = use.declared.unit->source->name();
  const bool is_elsewhere = use.declared.unit != &query.analysis.root();
  if (is_elsewhere && !library.empty() && file.starts_with(library + "/")) {
    refuse("this name belongs to the standard library");
  }
  return use;
}

bool is_name(const std::string& text) {
  const auto is_inside = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  const bool is_word = !text.empty() && std::ranges::all_of(text, is_inside) &&
                       std::isdigit(static_cast<unsigned char>(text.front())) == 0;
  return is_word && dsl::word_kind(text) == dsl::TokenKind::Name;
}

// In its own file a `fn` hides the operator with its name; in other files the operator hides it.
void check_no_operator(const Declaration& decl, const std::string& name) {
  const bool is_called = decl.kind == NameKind::Fn || decl.kind == NameKind::ExternFn;
  if (is_called && sema::is_operator_name(name)) refuse("`" + name + "` is an operator");
}

bool overlap(Span a, Span b) {
  return a.begin < b.end && b.begin < a.end;
}

// Would the new name mean something else at one of the uses, or hide it? Fields have separate
// names.
void check_free(const NameIndex& names, const Declaration& decl, const std::string& name) {
  for (const Declaration& other : names.declarations) {
    const bool are_fields = (other.kind == NameKind::Field) == (decl.kind == NameKind::Field);
    if (other.name.text != name || !are_fields || !overlap(other.scope, decl.scope)) continue;
    refuse("`" + name + "` is declared here already");
  }
}

bool is_imported(const sema::FileUnit& unit, const std::string& name) {
  return std::ranges::any_of(unit.imports, [&](const sema::ImportedFiles& import) {
    return std::ranges::any_of(
        import.files, [&](const sema::FileUnit* file) { return file->names.contains(name); });
  });
}

// Another file that uses the name must not use the new one for something else.
void check_free_in(const Analysis& other, const std::string& name) {
  const auto has_name = [&](const Declaration& decl) {
    return decl.kind != NameKind::Field && decl.name.text == name;
  };
  if (!std::ranges::any_of(other.names().declarations, has_name)) return;
  refuse("`" + name + "` is declared in " + other.source().name() + " already");
}

std::string new_text(const Analysis& analysis, const NameUse& use, const Declaration& decl,
                     const std::string& name) {
  if (!use.is_shorthand) return name;
  // `wire { value }` is short for `wire { value: value }`.
  const std::string old(analysis.source().text(use.span));
  return decl.kind == NameKind::Field ? name + ": " + old : old + ": " + name;
}

Json edits_of(const Analysis& analysis, const std::vector<NameUse>& uses, const Declaration& decl,
              const std::string& name) {
  const TextPositions positions(analysis.source().text());
  Json edits = Json::array();
  for (const NameUse& use : uses) {
    edits.push_back({{"range", range_json(positions, use.span)},
                     {"newText", new_text(analysis, use, decl, name)}});
  }
  return edits;
}

}  // namespace

Json prepare_rename(const Query& query) {
  const NameUse use = name_to_change(query);
  return {{"range", range_json(query.positions, use.span)},
          {"placeholder", std::string(query.analysis.source().text(use.span))}};
}

Json rename(const Query& query, const std::string& name) {
  const NameUse use = name_to_change(query);
  const Declaration* decl = query.analysis.find(use.declared);
  if (decl == nullptr) refuse("no name of the program is here");
  if (decl->kind == NameKind::Word) refuse("a word that a parameter takes is given in other files");
  if (!is_name(name)) refuse("`" + name + "` cannot be a name");
  if (sema::is_reserved_name(name)) refuse("`" + name + "` is a built-in name");
  if (name == decl->name.text) return {{"changes", Json::object()}};
  check_no_operator(*decl, name);
  check_free(query.analysis.names_of(*use.declared.unit), *decl, name);
  if (decl->kind != NameKind::Field && is_imported(query.analysis.imports(), name))
    refuse("`" + name + "` is imported here already");
  Json changes = Json::object();
  changes[query.document.uri] =
      edits_of(query.analysis, uses_in(query.analysis, use.declared), *decl, name);
  visit_other_files(query, use.declared, *decl,
                    [&](const std::string& path, const Analysis& other, const auto& uses) {
                      check_free_in(other, name);
                      changes[uri_of_path(path)] = edits_of(other, uses, *decl, name);
                    });
  return {{"changes", std::move(changes)}};
}

}  // namespace cinch::lsp
