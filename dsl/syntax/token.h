// Tokens: what the lexer makes of text and the grammar reads. A stream is made in two steps: lex()
// cuts text into raw tokens and comments; lay_out() matches brackets and settles
// which line ends count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/diag/diag.h"
#include "dsl/source/source.h"
#include "dsl/syntax/ast.h"

namespace cinch::dsl {

enum class TokenKind : std::uint8_t {
#define CINCH_KEYWORD(kind, text) kind,
#define CINCH_PUNCT(kind, text) kind,
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
  Name,
  Integer,
  Float,
  String,
  /// A line end or `;` that ends a statement. Made by lay_out, as are the next four.
  End,
  /// `<` and `>` of `int<b>`, `uint<b>` and `bitcast<T>`.
  AngleOpen,
  AngleClose,
  /// The brackets of an interval; the text says which they are.
  IntervalOpen,
  IntervalClose,
  /// A piece that was no token; reported already.
  Invalid,
  EndOfFile,
};

struct Token {
  static constexpr std::uint32_t kNone = 0xffffffffu;

  TokenKind kind = TokenKind::EndOfFile;
  /// The mistake at this token was reported: the grammar stays silent about it.
  bool is_reported = false;
  /// A line end stands between the token before and this one (raw tokens).
  bool starts_line = false;
  Span span;
  std::string_view text;
  /// Index of the other bracket of the pair, or kNone (laid-out tokens).
  std::uint32_t partner = kNone;
  /// Index into TokenStream::docs of the `///` text right before this token, or kNone.
  std::uint32_t doc = kNone;
};

struct TokenStream {
  /// Ends with one EndOfFile token.
  std::vector<Token> tokens;
  std::vector<ast::Comment> comments;
  std::vector<std::string> docs;
};

/// `text` of a keyword or punctuation kind; "" for the others.
std::string_view spelling(TokenKind kind);
/// The kind of a word: its keyword, or Name.
TokenKind word_kind(std::string_view word);
inline bool is_keyword(TokenKind kind) {
  return kind <= TokenKind::KwPi;
}
/// What stands here, for "found …": "`x`", "the end of the line".
std::string describe(const Token& token);

/// Cuts a file into raw tokens and comments. Reports text that is no token (Invalid) and goes on.
TokenStream lex(const SourceBuffer& source, DiagSink& sink);

/// Settles what a grammar of tokens cannot see, in one sweep over the raw tokens:
///   - `<` `>` around a width (`int<b>`) or the type of `bitcast` become AngleOpen, AngleClose
///   (`>>`, `>=` are cut);
///   - brackets are paired; one that is never closed is reported where it was opened and gets a
///   closing token
///     marked is_reported, so that the grammar sees balanced brackets;
///   - after the word `in`, `(` or `[` with a comma inside opens an interval and may be closed by
///   either;
///   - line ends and `;` that end statements become End (never two in a row); all others vanish.
/// Line ends count where the innermost bracket is `{` or none, except after `{ = -> : ,` and
/// operators and before `}` and `else`.
TokenStream lay_out(TokenStream raw, DiagSink& sink);

}  // namespace cinch::dsl
