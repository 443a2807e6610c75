#include "compiler/lsp/features.h"

#include <algorithm>

#include "dsl/source/source.h"
#include "dsl/syntax/token.h"

namespace cinch::lsp {

namespace {

using dsl::Token;
using dsl::TokenKind;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_opener(TokenKind kind) {
  return kind == TokenKind::LParen || kind == TokenKind::LBracket || kind == TokenKind::LBrace;
}

bool is_closer(TokenKind kind) {
  return kind == TokenKind::RParen || kind == TokenKind::RBracket || kind == TokenKind::RBrace;
}

// The tokens before a place, and the brackets that are open there.
class PlaceReader {
 public:
  PlaceReader(const dsl::SourceBuffer& source, dsl::DiagSink& sink)
      : source_(source), stream_(dsl::lex(source, sink)) {
    stream_.tokens.pop_back();  // the end of the file
    for (std::size_t i = 0; i < stream_.tokens.size(); ++i) {
      const TokenKind kind = stream_.tokens[i].kind;
      if (is_opener(kind)) open_.push_back(i);
      if (is_closer(kind) && !open_.empty()) open_.pop_back();
    }
  }

  PlaceContext read() const {
    PlaceContext context;
    const bool is_in_string =
        has_last(TokenKind::Invalid) && token(0)->text.starts_with('"') && !begins_line();
    if (is_in_comment() || is_in_string) return context;
    if (read_import(context) || read_member(context)) return context;
    context.kind = kind_here();
    if (has_last(TokenKind::LParen) || has_last(TokenKind::Comma)) context.callee = callee();
    return context;
  }

 private:
  const Token* token(std::size_t back) const {
    const auto& tokens = stream_.tokens;
    return back < tokens.size() ? &tokens[tokens.size() - 1 - back] : nullptr;
  }
  bool has_last(TokenKind kind) const { return token(0) != nullptr && token(0)->kind == kind; }
  TokenKind kind_at(std::size_t index) const {
    const auto& tokens = stream_.tokens;
    return index < tokens.size() ? tokens[index].kind : TokenKind::EndOfFile;
  }
  std::string_view text_at(std::size_t index) const {
    const auto& tokens = stream_.tokens;
    return index < tokens.size() ? tokens[index].text : std::string_view();
  }

  bool begins_line() const {
    const std::uint32_t from = token(0) == nullptr ? 0 : token(0)->span.end;
    return token(0) == nullptr || source_.text().substr(from).find('\n') != std::string_view::npos;
  }

  bool is_in_comment() const {
    if (stream_.comments.empty()) return false;
    const ast::Comment& last = stream_.comments.back();
    const std::string_view rest = source_.text().substr(last.span.begin);
    if (last.kind != ast::CommentKind::Block) return rest.find('\n') == std::string_view::npos;
    return rest.find("*/", 2) == std::string_view::npos;
  }

  // `import`, `import std.`, `import std.family.`
  bool read_import(PlaceContext& context) const {
    std::size_t back = 0;
    std::vector<std::string> words;
    while (token(back) != nullptr && token(back)->kind == TokenKind::Dot) {
      if (token(back + 1) == nullptr || token(back + 1)->kind != TokenKind::Name) return false;
      words.emplace_back(token(back + 1)->text);
      back += 2;
    }
    if (token(back) == nullptr || token(back)->kind != TokenKind::KwImport) return false;
    std::ranges::reverse(words);
    context.kind = PlaceKind::Import;
    context.path = std::move(words);
    return true;
  }

  bool read_member(PlaceContext& context) const {
    if (!has_last(TokenKind::Dot)) return false;
    const bool has_base = token(1) != nullptr && token(1)->kind == TokenKind::Name;
    context.kind = has_base ? PlaceKind::Member : PlaceKind::Nothing;
    if (has_base) context.base = token(1)->text;
    return true;
  }

  // Index of the token before the name and parameters that end before `brace`.
  std::size_t before_signature(std::size_t brace) const {
    std::size_t at = brace - 1;
    if (kind_at(at) != TokenKind::RParen) return at - 1;
    // Brackets of an interval may be of different kinds.
    int depth = 0;
    do {
      if (is_closer(kind_at(at))) ++depth;
      if (is_opener(kind_at(at))) --depth;
      --at;
    } while (depth > 0 && at < stream_.tokens.size());
    return at - 1;
  }

  bool opens_compressor(std::size_t bracket) const {
    return kind_at(bracket) == TokenKind::LBrace &&
           kind_at(before_signature(bracket)) == TokenKind::KwCompressor;
  }

  // `(` of the parameters of a compressor, a fn or a method.
  bool opens_parameters(std::size_t bracket) const {
    if (kind_at(bracket) != TokenKind::LParen) return false;
    const TokenKind before = kind_at(bracket - 2);
    if (before == TokenKind::KwCompressor || before == TokenKind::KwFn) return true;
    const std::string_view name = text_at(bracket - 1);
    const bool is_method = name == "encode" || name == "finish" || name == "sync";
    return is_method && open_.size() > 1 && opens_compressor(open_[open_.size() - 2]);
  }

  // The innermost open `{`, if it is not within another bracket.
  bool opens_wire(std::size_t bracket) const {
    return kind_at(bracket) == TokenKind::LBrace && kind_at(bracket - 1) == TokenKind::KwWire &&
           open_.size() > 1 && opens_compressor(open_[open_.size() - 2]);
  }

  std::string_view first_word_of_line() const {
    for (std::size_t back = 0; token(back) != nullptr; ++back) {
      if (token(back)->starts_line) return token(back)->text;
    }
    return "";
  }

  bool is_type_expected() const {
    if (has_last(TokenKind::KwAs) || has_last(TokenKind::Arrow)) return true;
    std::size_t back = 0;
    if (has_last(TokenKind::LBracket)) back = 1;
    const Token* before = token(back);
    if (before == nullptr) return false;
    if (before->kind == TokenKind::Arrow) return true;
    if (before->kind != TokenKind::Colon) return false;
    const std::size_t around = open_.size() - back;
    if (around == 0 || around > open_.size()) return false;
    const std::size_t bracket = open_[around - 1];
    const Token* const word = token(back + 2);
    const bool is_item = word != nullptr && (word->text == "state" || word->text == "input");
    return opens_parameters(bracket) || opens_wire(bracket) || is_item;
  }

  bool is_new_name() const {
    return has_last(TokenKind::KwLet) || has_last(TokenKind::KwMut) || has_last(TokenKind::KwFor) ||
           has_last(TokenKind::KwFn) || has_last(TokenKind::KwCompressor) ||
           has_last(TokenKind::KwConst);
  }

  PlaceKind kind_here() const {
    if (is_new_name()) return PlaceKind::Nothing;
    if (is_type_expected()) return PlaceKind::Type;
    if (open_.empty()) return begins_line() ? PlaceKind::Declarations : PlaceKind::Expression;
    const std::size_t bracket = open_.back();
    const bool begins = begins_line() || token(0)->kind == TokenKind::LBrace;
    if (opens_compressor(bracket)) {
      if (begins) return PlaceKind::Items;
      return first_word_of_line() == "claims" ? PlaceKind::Claims : PlaceKind::Expression;
    }
    if (opens_wire(bracket)) return begins ? PlaceKind::WireEntries : PlaceKind::Expression;
    // `{` of the payload that an `encode` makes.
    if (kind_at(bracket) == TokenKind::LBrace && kind_at(bracket - 1) == TokenKind::KwWire)
      return begins || has_last(TokenKind::Comma) ? PlaceKind::WireFields : PlaceKind::Expression;
    if (opens_parameters(bracket) && (begins || has_last(TokenKind::LParen)))
      return PlaceKind::Nothing;
    if (kind_at(bracket) != TokenKind::LBrace) return PlaceKind::Expression;
    return begins ? PlaceKind::Statement : PlaceKind::Expression;
  }

  std::string callee() const {
    if (open_.empty() || kind_at(open_.back()) != TokenKind::LParen) return "";
    const bool is_call =
        !opens_parameters(open_.back()) && kind_at(open_.back() - 1) == TokenKind::Name;
    return is_call ? std::string(text_at(open_.back() - 1)) : "";
  }

  const dsl::SourceBuffer& source_;
  dsl::TokenStream stream_;
  std::vector<std::size_t> open_;  // indices of open brackets, the innermost last
};

}  // namespace

PlaceContext place_at(std::string_view text, std::uint32_t offset) {
  std::string_view before = text.substr(0, offset);
  while (!before.empty() && is_word_character(before.back())) before.remove_suffix(1);
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  return PlaceReader(sources.add("", std::string(before)), sink).read();
}

}  // namespace cinch::lsp
