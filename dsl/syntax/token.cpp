// Tables over token.def: spelling, keywords, descriptions.
#include "dsl/syntax/token.h"

#include <algorithm>

namespace cinch::dsl {

namespace {

struct Spelling {
  TokenKind kind;
  std::string_view text;
};

constexpr Spelling kKeywords[] = {
#define CINCH_KEYWORD(kind, text) {TokenKind::kind, text},
#define CINCH_PUNCT(kind, text)
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
};

constexpr std::string_view kSpellings[] = {
#define CINCH_KEYWORD(kind, text) text,
#define CINCH_PUNCT(kind, text) text,
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
};

}  // namespace

std::string_view spelling(TokenKind kind) {
  const auto idx = static_cast<std::size_t>(kind);
  return idx < std::size(kSpellings) ? kSpellings[idx] : std::string_view();
}

TokenKind word_kind(std::string_view word) {
  const auto found = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                  [&](const Spelling& row) { return row.text == word; });
  return found != std::end(kKeywords) ? found->kind : TokenKind::Name;
}

std::string describe(const Token& token) {
  // Cuts longer texts, since a message is one line.
  constexpr std::size_t kMaxShown = 40;
  switch (token.kind) {
    case TokenKind::End:
      return token.text == ";" ? "`;`" : "the end of the line";
    case TokenKind::EndOfFile:
      return "the end of the file";
    case TokenKind::String:
      return "a string";
    default:
      break;
  }
  std::string text(token.text.substr(0, kMaxShown));
  if (token.text.size() > kMaxShown) text += "…";
  return (is_keyword(token.kind) ? "the reserved word `" : "`") + text + "`";
}

}  // namespace cinch::dsl
