// Types that a program states, and conversions to them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// Types as a program writes them: scalar types, arrays, and the sizes in them.
class WrittenTypes : Part {
 public:
  using Part::Part;

  /// A scalar type; reports and gives nothing where it is none.
  std::optional<DType> dtype_of(ast::TypeId id);
  /// A scalar or array type with its sizes; reports and gives nothing where it is none.
  std::optional<Type> type_of(ast::TypeId id);
};

/// Conversions of values: exact numbers take the type they meet, other values widen silently where
/// nothing can change, all else needs `as`.
class Conversions : Part {
 public:
  using Part::Part;

  /// The type a value has when nothing else decides.
  Value materialize(const Value& value);
  /// A literal of 2^63 or more as a float of the type.
  Value big_as_float(const Value& value, DType to);
  /// Does the type hold all constants that the value may be? Reports the first that it does not
  /// hold.
  bool is_every_choice_in(const Value& value, DType to);
  /// Silent conversion of the elements to `to`; reports when a value could change.
  Value coerce(const Value& value, DType to);
  /// `value as to`.
  Value convert(const Value& value, DType to, Span span);
  /// The value in the type in which arithmetic on it is done.
  Value arithmetic(const Value& value);
  /// Float of at least f32 for functions of reals; reports.
  Value as_float(const Value& value, std::string_view op);
  /// An operand that meets no other type: a quotient with a fraction becomes a float.
  Value unmet(const Value& value);
  /// Operands that may meet nothing but each other: one with a fraction makes all of them floats.
  std::vector<Value> unmet_together(std::vector<Value> values);
  /// Bools, or reported as `what`.
  Value bool_value(const Value& value, std::string_view what);
  /// What `if`, `while` and `assert` take.
  Value one_bool(const Value& chosen_by);
  /// Converts a value for a place of this type: elements widen, a number fills an array, a row
  /// fills a matrix.
  Value fit_to(const Value& value, const Type& type, std::string_view name, Span span);

 private:
  Value literal(HostExprId constant, DType to, Span span);
  Value size_in_type(const Value& value, DType to);
};

}  // namespace cinch::sema
