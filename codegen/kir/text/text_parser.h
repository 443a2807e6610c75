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

#include "codegen/kir/kir.h"
#include "codegen/kir/text/text_lexer.h"

namespace cinch::kir {

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
