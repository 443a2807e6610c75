// Hover: the declaration of a name, its type and size, and the comment before it; the table's text
// for operators and claims; the type of any other expression.
#include <optional>
#include <string>

#include "compiler/lsp/describe.h"
#include "compiler/lsp/features.h"
#include "dsl/sema/claims.h"

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

}  // namespace cinch::lsp
