// Words, strings and single marks of the kernel IR's text form, with line numbers. A word is a run
// of letters, digits, `_` and `.`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cinch::kir {

enum class TokenKind : std::uint8_t { Word, String, Mark, End };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;  // of a string: without quotes and escapes
  int line = 1;
};

// Reads ahead by one token. The first error sticks: after it every token is End, so that callers
// need not look at every step.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  const Token& peek() const { return token_; }
  /// The current token; moves on.
  Token take();
  bool is_mark(char mark) const { return token_.kind == TokenKind::Mark && token_.text[0] == mark; }
  bool is_word(std::string_view word) const {
    return token_.kind == TokenKind::Word && token_.text == word;
  }
  /// Moves on if the token is that mark or word.
  bool accept(char mark);
  bool accept(std::string_view word);
  void expect(char mark);
  void expect(std::string_view word);
  std::string expect_word(std::string_view what);
  std::string expect_string();
  /// Decimal or 0x…; at most `max`.
  std::uint64_t expect_number(std::uint64_t max = UINT64_MAX);

  void fail(std::string message);
  bool failed() const { return error_.has_value(); }
  /// The first thing that was not as expected.
  const std::optional<std::string>& error() const { return error_; }

 private:
  void next();
  void skip_blanks();
  void lex_string();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  Token token_;
  std::optional<std::string> error_;
};

/// A whole number in decimal or, after 0x, hexadecimal digits.
std::optional<std::uint64_t> parse_number(std::string_view text);

}  // namespace cinch::kir
