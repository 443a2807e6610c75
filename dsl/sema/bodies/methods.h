// Bodies: encode, decode, finish and sync of the outermost compressor, and those of wrapped ones
// inlined where `inner.encode(x)` and its like are called.
#pragma once

#include <functional>
#include <string_view>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Methods : Part {
 public:
  using Part::Part;

  /// The only parameter of a method; nullptr where it has none, or more.
  const ast::Param* method_param(Instance& instance, ast::MethodKind kind);
  /// The compressor's encode of `g`, inlined; a wire literal.
  Value encode_value(Instance& instance, const Value& g, Span span);
  /// The compressor's decode, inlined.
  Value decode_value(Instance& instance, const Value& payload, Span span);
  /// The compressor's finish, inlined; the mean where it has none.
  Value finish_value(Instance& instance, const Value& sum, Span span);
  /// All bodies of the program.
  void elaborate_bodies(Instance& instance);
  /// A value in the shape of a wrapped compressor's gradient; reports another number of elements.
  Value inner_argument(const Value& value, Instance& inner, Span span);
  /// The encode of a wrapped compressor, inlined in finish: every rank draws alike, and states of
  /// one rank are rejected.
  Value encode_in_finish(Instance& inner, const Value& g, Span span);
  /// The result of a wrapped compressor in the shape of the wrapper's gradient.
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
  void check_collectives(const Body& sync);
  const Instance* rank_states(const Instance& instance) const;

  int depth_ = 0;  // inlined methods
};

}  // namespace cinch::sema
