// Types in a program's text, and conversions to them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dsl/sema/elaboration/part.h"
#include "dsl/sema/sizes/size_prover.h"
#include "dsl/sema/value.h"

namespace cinch::sema {
// The types of values, and which types fit together. Pure rules: nothing here reports, builds an
// expression or looks up names.

/// Is the operator min, max or clamp, with which programs bound sizes?
bool bounds(ScalarOp op);
/// Does the operator take only floats? Rounding does, too.
bool is_for_reals(ScalarOp op);

class TypeRules {
 public:
  TypeRules(HostExprPool& pool, SizeProver& prover, const Mode& mode)
      : pool_(pool), prover_(prover), mode_(mode) {}

  /// Is it proved, for every n, parameter and step, that the number fits in the type?
  bool is_known_to_fit(HostExprId number, DType type) const;
  /// The element type of a value. Nothing for an exact number.
  std::optional<DType> own_dtype(const Value& value) const;
  /// Is it a table of only bools?
  bool is_bool_table(const Value& value) const;
  /// Is it a float, or a number with a decimal point?
  bool is_real(const Value& value) const;
  /// The common type of two operands. Nothing if no type holds both.
  std::optional<DType> meet(const Value& a, const Value& b) const;
  /// Would `coerce` convert the value without a report?
  bool can_coerce(const Value& value, DType to) const;
  /// The shape of any value, with the element type only of typed values.
  Type value_type(const Value& value) const;
  /// The type that holds a number of the host exactly. Floats that are not constants are f32.
  DType wide_type(const Value& value) const;
  /// The type of exact numbers that are combined only with each other.
  DType type_of_numbers(const std::vector<Value>& numbers) const;
  /// All constants from which a choice chooses, including those of inner choices.
  std::vector<HostExprId> constants_of(std::span<const Value> choices) const;
  /// Does the exact number fit in an i32? Such numbers are i32 if nothing else decides their type.
  bool is_small_number(const Value& value) const;
  /// Can the type hold the number? Looks only at constants.
  bool has_room(const Value& number, DType type) const;
  /// Is any of its constants a quotient with a fraction?
  bool has_fraction(const Value& value) const;
  /// Is it a size that may be negative?
  bool may_be_negative(const Value& value) const;
  /// Is the result an integer that, like its operands, still takes the type of another operand?
  bool stays_adaptable(ScalarOp op, std::span<const Value> args) const;
  /// Is it a number with a decimal point, which is f32 unless another type decides?
  bool is_exact_float(const Value& value) const;

 private:
  HostExprPool& pool() const { return pool_; }
  bool is_fraction(HostExprId number) const;

  HostExprPool& pool_;
  SizeProver& prover_;
  const Mode& mode_;
  mutable std::unordered_map<HostExprId, bool> fractions_;  // what is_fraction has found
};

class Conversions : Part {
 public:
  using Part::Part;

  // Reads types in a program's text: scalar types, arrays, and their sizes.
  /// A scalar type. Reports other types and returns nothing.
  std::optional<DType> dtype_of(ast::TypeId id);
  /// A scalar or array type with its sizes. Reports other types and returns nothing.
  std::optional<Type> type_of(ast::TypeId id);

  // Converts values. Exact numbers take the type of the operand that they are combined with. Other
  // values widen silently if no value can change. All other conversions need `as`.
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
