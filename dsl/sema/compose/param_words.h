// Words that parameters take: `fit: {exponential, gamma}`. A word is a number, which its parameter
// gives it; two parameters may give one word different numbers.
#pragma once

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class ParamWords : Part {
 public:
  using Part::Part;

  /// Declares the i-th word of a parameter: seen wherever the compressor's names are.
  void declare_word(Instance& instance, const ast::Param& param, std::size_t i);
  /// An operand of a comparison: beside a parameter of words it is that parameter's word.
  Value compared(ast::ExprId id, ast::ExprId other);
  /// Is the name unknown here? Then it may be a word of the compressor that an open wrapper will
  /// wrap.
  bool may_be_word(ast::ExprId id);
  /// Reports a word that has several numbers.
  Value ambiguous_word(const ast::Name& name);

 private:
  const ast::Param* words_param(ast::ExprId id) const;
};

}  // namespace cinch::sema
