// Elaborates encode, decode, finish and sync of the outermost compressor. Inlines those of wrapped
// compressors where `inner.encode(x)` and the like are called.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"
#include "dsl/sema/rank_agreement.h"

namespace cinch::sema {

class Methods : Part {
 public:
  using Part::Part;

  /// The parameter of a method; nullptr if it has none or several.
  const ast::Param* method_param(Instance& instance, ast::MethodKind kind);
  /// Inlines the compressor's encode of `g`. Returns a wire literal.
  Value encode_value(Instance& instance, const Value& g, Span span);
  Value decode_value(Instance& instance, const Value& payload, Span span);
  /// Inlines the compressor's finish. A compressor without one computes the mean.
  Value finish_value(Instance& instance, const Value& sum, Span span);
  void elaborate_bodies(Instance& instance);
  /// Reshapes a value to a wrapped compressor's gradient. Reports a different number of elements.
  Value inner_argument(const Value& value, Instance& inner, Span span);
  /// Inlines a wrapped compressor's encode in finish. All ranks draw the same numbers there.
  /// Reports states that differ between ranks.
  Value encode_in_finish(Instance& inner, const Value& g, Span span);
  /// Reshapes a wrapped compressor's result to the wrapper's gradient.
  Value outer_result(Value value, const Instance& inner, Span span);

 private:
  Type gradient_type(const Instance& instance);
  Value gradient_value(Instance& instance, Span span);
  Value gradient_result(const Value& value, Instance& instance, std::string_view what);
  Value program_result(const Value& value);
  Value method_block(Instance& instance, ast::MethodKind kind, const Value& arg, Span span,
                     const std::function<Value(Value)>& finish);
  bool has_finish(const Instance& instance) const;
  Body body_of(BodyKind kind, Instance& instance, const std::function<Value()>& make);
  void elaborate_encode(Instance& instance);
  void elaborate_decode(Instance& instance);
  void check_agreement(const Instance& instance,
                       const std::function<std::vector<Disagreement>()>& find);
  const Instance* rank_states(const Instance& instance) const;

  int depth_ = 0;  // number of nested inlined methods
};

}  // namespace cinch::sema
