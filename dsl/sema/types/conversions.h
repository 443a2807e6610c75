// Types in a program's text, and conversions to them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// Reads types in a program's text: scalar types, arrays, and their sizes.
class WrittenTypes : Part {
 public:
  using Part::Part;

  /// A scalar type. Reports other types and returns nothing.
  std::optional<DType> dtype_of(ast::TypeId id);
  /// A scalar or array type with its sizes. Reports other types and returns nothing.
  std::optional<Type> type_of(ast::TypeId id);
};

/// Converts values. Exact numbers take the type of the operand that they are combined with. Other
/// values widen silently if no value can change. All other conversions need `as`.
class Conversions : Part {
 public:
  using Part::Part;

  /// Gives a value its default type, if nothing else decides.
  Value materialize(const Value& value);
  /// Converts a literal of 2^63 or more to a float type.
  Value big_as_float(const Value& value, DType to);
  /// Can the type hold all constants that the value may be? Reports the first that does not fit.
  bool is_every_choice_in(const Value& value, DType to);
  /// Converts the elements to `to` silently. Reports a conversion that could change a value.
  Value coerce(const Value& value, DType to);
  /// `value as to`.
  Value convert(const Value& value, DType to, Span span);
  /// Converts a value to the type in which arithmetic on it is done.
  Value arithmetic(const Value& value);
  /// Converts a value to a float of at least f32, for functions of reals. Reports values that
  /// cannot be converted.
  Value as_float(const Value& value, std::string_view op);
  /// An operand without another one that decides its type: a quotient with a fraction becomes a
  /// float.
  Value unmet(const Value& value);
  /// Operands without others that decide their type: if one has a fraction, all become floats.
  std::vector<Value> unmet_together(std::vector<Value> values);
  /// Requires bools. Reports other values as `what`.
  Value bool_value(const Value& value, std::string_view what);
  /// Requires one bool, for `if`, `while` and `assert`.
  Value one_bool(const Value& chosen_by);
  /// Converts a value for a place of this type: elements widen, a number fills an array, and a row
  /// fills a matrix.
  Value fit_to(const Value& value, const Type& type, std::string_view name, Span span);

 private:
  Value literal(HostExprId constant, DType to, Span span);
  Value size_in_type(const Value& value, DType to);
};

}  // namespace cinch::sema
