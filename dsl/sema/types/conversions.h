// Conversions of values: exact numbers take the type they meet, other values widen silently where
// nothing can change, all else needs `as`.
#pragma once

#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Conversions : Part {
 public:
  using Part::Part;

  /// The type a value has when nothing else decides.
  Value materialize(const Value& value);
  /// A literal of 2^63 or more as the number that it is, which for f32 and f64 is a float.
  Value big_as_float(const Value& value, DType to);
  /// Are all constants that the value may be numbers of the type? Reports the first that is not.
  bool is_every_choice_in(const Value& value, DType to);
  /// Silent conversion of the elements to `to`; reports when a value could change.
  Value coerce(const Value& value, DType to);
  /// `value as to`.
  Value convert(const Value& value, DType to, Span span);
  /// The value in the type in which arithmetic on it is done.
  Value arithmetic(const Value& value);
  /// Float of at least f32 for functions of reals; reports.
  Value as_float(const Value& value, std::string_view op);
  /// An operand that meets nothing which would say what a quotient is: with a fraction it is a
  /// float.
  Value unmet(const Value& value);
  /// Operands that may meet nothing but each other: one with a fraction makes all of them floats.
  std::vector<Value> unmet_together(std::vector<Value> values);
  /// Bools, or reported as `what`.
  Value bool_value(const Value& value, std::string_view what);
  /// What `if`, `while` and `assert` take.
  Value one_bool(const Value& chosen_by);
  /// A value for a place of this type: the elements widen, a number fills an array, a row a matrix.
  Value fit_to(const Value& value, const Type& type, std::string_view name, Span span);

 private:
  Value literal(HostExprId constant, DType to, Span span);
  Value size_in_type(const Value& value, DType to);
};

}  // namespace cinch::sema
