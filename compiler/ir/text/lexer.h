// Tokens of the IR's text form, and the failure that its parsers throw among themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cinch::ir {

/// Thrown by lexer and parsers, caught by ir::parse only.
struct ParseFailure {
  std::string message;  // with line and column
};

enum class TokenKind : std::uint8_t { End, Name, Value, Number, String, Sign };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;    // Name, Number, Sign: as in the text
  std::string content;      // String: unescaped; Value: the name after the point, may be empty
  std::uint32_t value = 0;  // Value: the number after %
  std::size_t offset = 0;
};

/// A lexer with one token of look-ahead. The text outlives it.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& peek() const { return token_; }
  Token take();
  bool is_at_end() const { return token_.kind == TokenKind::End; }
  /// Is the next token this sign or name?
  bool is(std::string_view text) const;
  /// Takes the next token if it is this one.
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::string_view expect_name(const char* what);
  /// A bare or quoted name.
  std::string expect_text(const char* what);
  std::uint32_t expect_index(const char* what);
  double expect_double();
  /// Throws an error at the next token.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  void advance();
  void lex_value();
  void lex_string();
  void lex_number();
  [[noreturn]] void fail_at(std::size_t offset, const std::string& message) const;

  std::string_view text_;
  std::size_t next_ = 0;
  Token token_;
};

/// A number token as i64 or u64 bits; fails through the lexer if it is out of range.
std::uint64_t integer_bits(const Lexer& lexer, std::string_view text);
double double_of(const Lexer& lexer, std::string_view text);

}  // namespace cinch::ir
