// Words, strings and single marks of the kernel IR's text form, with line numbers, and the names
// that printer and parser share. A word is a run of letters, digits, `_` and `.`.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/image/image.h"

namespace cinch::kir {

enum class TokenKind : std::uint8_t { Word, String, Mark, End };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;  // of a string: without quotes and escapes
  int line = 1;
};

// Reads ahead by one token. The first error sticks: every token after it is End, so callers need
// not check each step.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  const Token& peek() const { return token_; }
  /// Returns the current token and moves on.
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
  /// Decimal or 0x…, at most `max`.
  std::uint64_t expect_number(std::uint64_t max = UINT64_MAX);

  void fail(std::string message);
  bool failed() const { return error_.has_value(); }
  /// The first error.
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

// ---- names that printer and parser share ----
inline constexpr std::array<std::string_view, 9> kRoleNames = {
    "gradient",   "output",         "field",    "count",    "state",
    "state_next", "state_in_place", "constant", "workspace"};
inline constexpr std::array<std::string_view, rt::kNumEntries> kEntryNames = {
    "init", "encode", "decode", "decode_add", "finish", "sync"};
inline constexpr std::array<std::string_view, 9> kCollectiveNames = {
    "no_collective", "all_reduce",   "all_gather",         "all_to_all",          "reduce_scatter",
    "broadcast",     "send_receive", "all_gather_counted", "send_receive_counted"};
inline constexpr std::array<std::string_view, 5> kReductionNames = {"none", "sum", "mean", "min",
                                                                    "max"};
inline constexpr std::array<std::string_view, 4> kFieldSumNames = {"none", "sum", "min", "max"};
inline constexpr std::array<std::string_view, 3> kGroupKindNames = {"tile", "row", "single"};
inline constexpr std::array<std::string_view, 2> kKernelRoleNames = {"sweep", "finish"};
inline constexpr std::array<std::string_view, 4> kHostTypeNames = {"int", "f32", "f64", "bool"};

}  // namespace cinch::kir
