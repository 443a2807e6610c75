// Tokens of the IR's text form, and the failure that its parsers throw among themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/ir/ir.h"

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

// The head of the IR's text form (facts of the program, constant tables), and host expressions.

/// Looks up names of sizes, parameters and counts in `info` as it is when they are read.
class HostParser {
 public:
  HostParser(Lexer& lexer, rt::ProgramInfo& info) : lexer_(lexer), info_(info) {}

  HostExprId parse_expr();
  /// Parses "f32", "[f32; n]", "[f32; r, c]".
  Type parse_type();

 private:
  HostExprId parse_term();
  HostExprId parse_primary();
  HostExprId parse_number();
  HostExprId parse_name();
  HostExprId parse_call(std::string_view callee);
  HostExprId parse_indexed(std::string_view callee);
  HostExprId parse_bits();
  HostExprId named(std::string_view name);
  HostExprId make(HostOp op, HostExprId a, HostExprId b = {}, HostExprId c = {});

  Lexer& lexer_;
  rt::ProgramInfo& info_;
  int depth_ = 0;
};

/// Parses lines until the head ends.
void parse_info(Lexer& lexer, Program& program);
/// Parses a constant of a type to the form of Attrs::bits.
std::uint64_t parse_value(Lexer& lexer, DType dtype);

/// The lines up to the first function.
std::string print_info(const Program& program);
/// A constant of a type from Attrs::bits (f64 bits of floats, i64 of integers), as text.
std::string print_value(DType dtype, std::uint64_t bits);

}  // namespace cinch::ir
