// Tokens and formulas of the text forms of the IR and of the kernel IR, and the failure that their
// parsers throw among themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::text {
/// Thrown by lexer and parsers, caught by the parse functions of both forms only.
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
  bool starts_line = false;
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
  std::uint64_t expect_number(const char* what, std::uint64_t most = UINT64_MAX);
  std::uint32_t expect_index(const char* what) {
    return static_cast<std::uint32_t>(expect_number(what, UINT32_MAX));
  }
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

/// Can the text form write the name without quotes: [A-Za-z_][A-Za-z0-9_.]*?
bool is_plain_name(std::string_view name);
/// The text in double quotes, with \" \\ \n and \xNN for other control bytes.
std::string quote(std::string_view text);

// Host expressions and types as text: `clamp(int(ceil(f64(n) * ratio)), 1, n)`, `[f32; n]`. Unlike
// formulas for people, this text parses back to the same expression: suffixes tell types (12, 0.5f,
// 0.5d) and casts are written. Named sizes are printed by name instead of their formula.

/// Prints expressions of one program. It uses a name only if the name is unambiguous.
class HostPrinter {
 public:
  /// Does not use the names of sizes from `visible_sizes` on: the definition of a size uses only
  /// earlier ones.
  explicit HostPrinter(const rt::ProgramInfo& info, std::size_t visible_sizes = ~std::size_t{0});

  /// Prints the size's name for its formula from now on.
  void name_size(const rt::SizeInfo& size);

  std::string print(HostExprId id) const {
    num_printed_ = 0;
    return print(id, false);
  }
  /// "[f32; n]", "u32".
  std::string print(const rt::ArrayType& type) const;

 private:
  std::string print(HostExprId id, bool is_nested) const;
  std::string print_node(HostExprId id, bool is_nested) const;
  std::string print_constant(HostExprId id) const;
  std::string print_call(const HostExprNode& node) const;
  /// The name if it is unambiguous, else callee(index, more).
  std::string print_named(std::string_view callee, std::uint32_t index, const std::string& name,
                          const std::string& more) const;

  const rt::ProgramInfo& info_;
  std::unordered_map<std::string, int> uses_;              // how often each name is used
  std::unordered_map<HostExprId, std::string> size_name_;  // by formula
  mutable std::size_t num_printed_ = 0;                    // parts of the present formula
};

/// Looks up names of sizes, parameters and counts in `info` as it is when they are read.
class HostParser {
 public:
  HostParser(Lexer& lexer, rt::ProgramInfo& info) : lexer_(lexer), info_(info) {}

  HostExprId parse_expr();
  DType parse_dtype();
  /// Parses "f32", "[f32; n]", "[f32; r, c]".
  rt::ArrayType parse_type();

 private:
  HostExprId parse_term();
  HostExprId parse_primary();
  HostExprId parse_number();
  HostExprId parse_call(std::string_view callee);
  HostExprId parse_indexed(std::string_view callee);
  HostType expect_host_type();
  HostExprId named(std::string_view name);
  HostExprId make(HostOp op, HostExprId a, HostExprId b = {}, HostExprId c = {});

  Lexer& lexer_;
  rt::ProgramInfo& info_;
  int depth_ = 0;
};

/// A constant of a type (f64 bits of floats, i64 of integers) as text.
std::string print_value(DType dtype, std::uint64_t bits);
std::uint64_t parse_value(Lexer& lexer, DType dtype);

}  // namespace cinch::text
