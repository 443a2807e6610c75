// Tokens, which the lexer makes of text and the grammar reads. There are two steps: lex() cuts text
// into raw tokens and comments; lay_out() pairs brackets and decides which line ends count.
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
  /// A line end or `;` that ends a statement. lay_out() makes this kind and the next four.
  End,
  /// `<` and `>` of `int<b>`, `uint<b>` and `bitcast<T>`.
  AngleOpen,
  AngleClose,
  /// The brackets of an interval; the text tells which.
  IntervalOpen,
  IntervalClose,
  /// Text that is not a token, which was reported already.
  Invalid,
  EndOfFile,
};

struct Token {
  static constexpr std::uint32_t kNone = 0xffffffffu;

  TokenKind kind = TokenKind::EndOfFile;
  /// A mistake at this token was reported, so the grammar does not report another.
  bool is_reported = false;
  /// There is a line end between the previous token and this one (raw tokens).
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

/// The text of a keyword or punctuation; "" for other kinds.
std::string_view spelling(TokenKind kind);
/// The kind of a word: its keyword, or Name.
TokenKind word_kind(std::string_view word);
/// The token in words, for "found …": "`x`", "the end of the line".
std::string describe(const Token& token);

/// Cuts a file into raw tokens and comments. Reports text that is not a token (Invalid) and goes
/// on.
TokenStream lex(const SourceBuffer& source, DiagSink& sink);

/// Decides in one sweep what a grammar of tokens cannot see:
///   - `<` and `>` around a width (`int<b>`) or the type of `bitcast` become AngleOpen and
///     AngleClose; `>>` and `>=` are cut.
///   - Brackets are paired. A bracket that is never closed is reported at its place and gets a
///   closing
///     token with is_reported, so that the grammar sees balanced brackets.
///   - After the word `in`, a `(` or `[` with a comma inside opens an interval, which either kind
///   of
///     bracket may close.
///   - Line ends and `;` that end statements become End (never two in a row). All others vanish. A
///   line
///     end counts if the innermost bracket is `{` or if there is none, except after `{ = -> : ,`
///     and operators, and before `}` and `else`.
TokenStream lay_out(TokenStream raw, DiagSink& sink);

}  // namespace cinch::dsl
