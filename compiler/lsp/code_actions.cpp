// Edits: quick fixes and renaming.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "compiler/lsp/features.h"
#include "compiler/service/front_end.h"
#include "dsl/sema/builtins.h"
#include "dsl/sema/module_data.h"
#include "dsl/syntax/token.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::lsp {
namespace {

struct Fix {
  std::string title;
  Span span;
  std::string text;
};

using Fixes = std::vector<Fix>;

// The text in the note's first backquotes.
std::string_view quoted_in(std::string_view note) {
  const std::size_t begin = note.find('`');
  const std::size_t end = begin == std::string_view::npos ? begin : note.find('`', begin + 1);
  return end == std::string_view::npos ? "" : note.substr(begin + 1, end - begin - 1);
}

// After the existing imports, or before the first declaration and its comment.
Span place_of_import(const Analysis& analysis) {
  std::uint32_t at = 0;
  const ast::Module& tree = analysis.root().tree;
  for (const ast::DeclId id : tree.decls) {
    if (!std::holds_alternative<ast::Import>(tree[id].node)) continue;
    const std::size_t line_end = analysis.source().text().find('\n', tree[id].span.end);
    if (line_end != std::string_view::npos) at = static_cast<std::uint32_t>(line_end + 1);
  }
  return {analysis.source().id(), at, at};
}

// "`topk` is in the library: `import std.sparsify`"
void add_import(const Analysis& analysis, const dsl::Diagnostic& diag, Fixes& fixes) {
  for (const dsl::Note& note : diag.notes) {
    const std::size_t at = note.text.find("`import std.");
    if (at == std::string::npos) continue;
    const std::string import(quoted_in(std::string_view(note.text).substr(at)));
    fixes.push_back({"Add `" + import + "`", place_of_import(analysis), import + "\n"});
  }
}

// `e as T`, with parentheses if `e` would not be a single operand.
void add_conversion(const Analysis& analysis, const dsl::Diagnostic& diag, Fixes& fixes) {
  const auto* type = diag.args.size() > 1 ? std::get_if<std::string>(&diag.args[1]) : nullptr;
  const bool is_scalar = type != nullptr && type->find_first_of(" [") == std::string::npos;
  if (!is_scalar) return;
  const std::string text(analysis.source().text(diag.span));
  const bool is_operand = text.find_first_of(" \n") == std::string::npos;
  const std::string converted = (is_operand ? text : "(" + text + ")") + " as " + *type;
  fixes.push_back({"Convert with `as " + *type + "`", diag.span, converted});
}

// The innermost call of `scatter` around the index.
void add_scatter(const Analysis& analysis, const dsl::Diagnostic& diag, Fixes& fixes) {
  const ast::Module& tree = analysis.root().tree;
  std::optional<Span> call;
  Span callee;
  for (const ast::Expr& expr : tree.exprs.nodes) {
    const auto* node = std::get_if<ast::Call>(&expr.node);
    const bool is_around = expr.span.begin <= diag.span.begin && diag.span.end <= expr.span.end;
    if (node == nullptr || !is_around || (call && call->size() <= expr.span.size())) continue;
    call = expr.span;
    callee = tree[node->callee].span;
  }
  if (!call || analysis.source().text(callee) != "scatter") return;
  fixes.push_back({"Change to `scatter_add`", callee, "scatter_add"});
  const Span bracket{call->file, call->end - 1, call->end - 1};
  fixes.push_back({"Add `keep: last`", bracket, ", keep: last"});
}

void add_limit(const Analysis& analysis, const dsl::Diagnostic& diag, Fixes& fixes) {
  const ast::Module& tree = analysis.root().tree;
  for (const ast::Stmt& stmt : tree.stmts.nodes) {
    const auto* loop = std::get_if<ast::While>(&stmt.node);
    if (loop == nullptr || stmt.span.begin != diag.span.begin || !loop->condition) continue;
    const std::uint32_t end = tree[loop->condition].span.end;
    fixes.push_back({"Add `at_most: 100`", {diag.span.file, end, end}, ", at_most: 100"});
  }
}

Fixes fixes_of(const Analysis& analysis, const dsl::Diagnostic& diag) {
  Fixes fixes;
  if (diag.suggestion && diag.suggestion->span.file == diag.span.file) {
    const std::string& text = diag.suggestion->replacement;
    fixes.push_back({"Change to `" + text + "`", diag.suggestion->span, text});
  }
  add_import(analysis, diag, fixes);
  switch (diag.kind) {
    case dsl::DiagKind::AmbiguousName:
      // "`sparsify.topk` is declared here", of a name that several imports bring in.
      for (const dsl::Note& note : diag.notes) {
        const std::string name(quoted_in(note.text));
        if (!name.empty()) fixes.push_back({"Change to `" + name + "`", diag.span, name});
      }
      break;
    case dsl::DiagKind::CannotConvert:
      add_conversion(analysis, diag, fixes);
      break;
    case dsl::DiagKind::IndexMayRepeat:
      add_scatter(analysis, diag, fixes);
      break;
    case dsl::DiagKind::LoopWithoutLimit:
      add_limit(analysis, diag, fixes);
      break;
    default:
      break;
  }
  return fixes;
}

}  // namespace

Json code_actions(const Query& query, std::uint32_t end) {
  Json actions = Json::array();
  for (const dsl::Diagnostic& diag : query.analysis.sink().all()) {
    const bool is_here = diag.span.file == query.analysis.source().id() && diag.span.begin <= end &&
                         query.offset <= diag.span.end;
    if (!is_here) continue;
    const Fixes fixes = fixes_of(query.analysis, diag);
    for (const Fix& fix : fixes) {
      const Json edit = {{"range", range_json(query.positions, fix.span)}, {"newText", fix.text}};
      const Json changes = {{query.document.uri, Json::array({edit})}};
      actions.push_back(
          {{"title", fix.title},
           {"kind", "quickfix"},
           {"isPreferred", fixes.size() == 1},
           {"diagnostics", Json::array({diagnostic_json(query.analysis, query.positions, diag)})},
           {"edit", {{"changes", changes}}}});
    }
  }
  return actions;
}

// Renaming. A name inside a compressor changes in its file; a name that other files can import
// changes in all Cinch files of the editor's folders. A change that would alter a program's meaning
// is rejected.

namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw RequestError{ErrorCode::RequestFailed, reason};
}

// The name under the cursor. For `value` in `wire { value }` that of the value: the field keeps its
// name.
NameUse name_to_change(const Query& query) {
  // Names in parts that the parser could not read would keep the old name.
  for (const dsl::Diagnostic& diag : query.analysis.sink().all()) {
    const bool is_of_syntax = diag.code().front() == 'L' || diag.code().front() == 'P';
    if (is_of_syntax && diag.span.file == query.analysis.source().id())
      refuse("the text has syntax errors");
  }
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

Json edits_of(const Analysis& analysis, const std::vector<NameUse>& uses, const Declaration& decl,
              const std::string& name) {
  const TextPositions positions(analysis.source().text());
  Json edits = Json::array();
  for (const NameUse& use : uses) {
    // `wire { value }` is short for `wire { value: value }`.
    const std::string old(analysis.source().text(use.span));
    const std::string text = !use.is_shorthand              ? name
                             : decl.kind == NameKind::Field ? fmt::format("{}: {}", name, old)
                                                            : fmt::format("{}: {}", old, name);
    edits.push_back({{"range", range_json(positions, use.span)}, {"newText", text}});
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
  // In its own file a `fn` hides the operator with its name; in other files the operator hides it.
  const bool is_called = decl->kind == NameKind::Fn || decl->kind == NameKind::ExternFn;
  if (is_called && sema::is_operator_name(name)) refuse("`" + name + "` is an operator");
  // Would the new name mean something else at one of the uses, or hide it? Fields have separate
  // names.
  const bool is_field = decl->kind == NameKind::Field;
  for (const Declaration& other : query.analysis.names_of(*use.declared.unit).declarations) {
    const bool overlap = other.scope.begin < decl->scope.end && decl->scope.begin < other.scope.end;
    if (other.name.text == name && (other.kind == NameKind::Field) == is_field && overlap)
      refuse("`" + name + "` is declared here already");
  }
  for (const sema::ImportedFiles& import : query.analysis.imports().imports) {
    for (const sema::FileUnit* file : import.files) {
      if (!is_field && file->names.contains(name))
        refuse("`" + name + "` is imported here already");
    }
  }
  Json changes = Json::object();
  changes[query.document.uri] =
      edits_of(query.analysis, uses_in(query.analysis, use.declared), *decl, name);
  visit_other_files(
      query, use.declared, *decl,
      [&](const std::string& path, const Analysis& other, const auto& uses) {
        // Another file that uses the name must not use the new one for something else.
        const bool has_name =
            std::ranges::any_of(other.names().declarations, [&](const Declaration& known) {
              return known.kind != NameKind::Field && known.name.text == name;
            });
        if (has_name) refuse("`" + name + "` is declared in " + other.source().name() + " already");
        changes[uri_of_path(path)] = edits_of(other, uses, *decl, name);
      });
  return {{"changes", std::move(changes)}};
}

}  // namespace cinch::lsp
