// Parser of the text form. The first error sticks. Only the host-expression pool throws, and parse
// catches that.
//
//   program  = `program` STRING item*
//   item     = `param` STRING dtype | `count` STRING expr | `wire_count` STRING expr
//            | `state` STRING array
//            | `field` STRING array [`by` = sum] [`ascending`] [`limit` = expr] [`packs` = STRING]
//            | `size` N = expr | `message` N = STRING | `constant` N = STRING
//            | `buffer` @N STRING dtype `bits`=N `role`=role `index`=N `elems`=expr `bytes`=expr
//            | kernel | entry
//   kernel   = `kernel` STRING role group_kind { head* combiner* (section `:` instr*)* }
//   instr    = [%N[.name]: type, … =] name[.scalar_op] operand, … @N, … attr*
//   expr     = number | true | f32:HEX | n | param(N, type) | count(N, expr) | cast(expr, type)
//            | op(expr, …)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/kir/kir.h"
#include "runtime/image/image.h"

namespace cinch::kir {
// Words, strings and single marks of the kernel IR's text form, with line numbers, and the names
// that printer and parser share. A word is a run of letters, digits, `_` and `.`.

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

class HostExprParser {
 public:
  HostExprParser(Lexer& lexer, HostExprPool& pool) : lexer_(lexer), pool_(pool) {}
  /// Reads `_` as an invalid id.
  HostExprId parse() { return parse_nested(0); }

 private:
  HostExprId parse_nested(int depth);
  HostExprId number(bool is_negative);
  HostExprId float_bits(bool is_double);
  HostExprId operation(const std::string& name, int depth);
  HostType type();

  Lexer& lexer_;
  HostExprPool& pool_;
};

class KernelParser {
 public:
  KernelParser(Lexer& lexer, KernelProgram& program)
      : lexer_(lexer), exprs_(lexer, program.info.exprs) {}
  /// Parses what follows the word `kernel`.
  Kernel parse();

 private:
  bool head_item();
  void combiner();
  void section();
  bool at_section() const;
  Instr instr();
  void operands(Instr& instr, int line);
  bool attribute(Instr& instr);
  ValueId value_ref();
  ValueId value_def();
  std::vector<ValueId> value_defs();
  DType dtype();

  Lexer& lexer_;
  HostExprParser exprs_;
  Kernel kernel_;
};

class StepParser {
 public:
  StepParser(Lexer& lexer, HostExprPool& pool) : lexer_(lexer), exprs_(lexer, pool) {}
  /// Parses steps between braces.
  std::vector<rt::Step> block(int depth = 0);

 private:
  rt::Step step(int depth);
  /// Parses what follows the name of a collective.
  void collective(rt::Step& step);
  std::uint32_t buffer();

  Lexer& lexer_;
  HostExprParser exprs_;
};

/// The index of the next word among `names`. Reports an unknown word.
template <std::size_t N>
std::size_t expect_name(Lexer& lexer, const std::array<std::string_view, N>& names) {
  const std::string word = lexer.expect_word("a name");
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == word) return i;
  }
  lexer.fail("unknown name '" + word + "'");
  return 0;
}

BufferIndex parse_buffer(Lexer& lexer);
/// Parses "@3 17": a buffer and the version in it.
Touch parse_touch(Lexer& lexer);
/// Reports an unknown name.
DType parse_dtype_word(Lexer& lexer);

}  // namespace cinch::kir
