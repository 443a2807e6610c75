// Quick fixes: edits from a diagnostic's suggestion, its notes or its kind.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/lsp/features.h"

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

// "`sparsify.topk` is declared here", of a name that several imports bring in.
void add_qualifiers(const dsl::Diagnostic& diag, Fixes& fixes) {
  for (const dsl::Note& note : diag.notes) {
    const std::string name(quoted_in(note.text));
    if (!name.empty()) fixes.push_back({"Change to `" + name + "`", diag.span, name});
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
      add_qualifiers(diag, fixes);
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

}  // namespace cinch::lsp
