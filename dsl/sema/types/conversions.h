// Types of values and in a program's text, conversions to them, constants and exact numbers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
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

/// Constants, arithmetic of the host, and exact numbers.
class Numbers : Part {
 public:
  using Part::Part;

  // Numbers that are known before a program runs: constants of files and expressions, and sizes
  // that the host computes.
  /// Evaluates an expression on the host, as an Int. Reports an expression that the host cannot
  /// compute, and returns nothing. Where counts are sizes, too, a number that is computed on the
  /// device gets a note about them.
  std::optional<HostExprId> host_size(ast::ExprId id, std::string_view what,
                                      bool takes_counts = false);
  /// The same as an f64.
  std::optional<HostExprId> host_float(ast::ExprId id, std::string_view what);
  Value constant(const Constant& number, Span span);
  /// Evaluates a constant expression. Reports other expressions and returns nothing.
  std::optional<Constant> constant_number(ast::ExprId id);
  /// The same with numbers of 2^63 or more as floats.
  std::optional<HostValue> constant_value(ast::ExprId id);
  /// The same for an integer.
  std::optional<std::int64_t> constant_int(ast::ExprId id);
  /// The value of a file's constant, computed once if it is made of numbers only.
  Value const_value(const DeclRef& decl, const ast::Const& node);
  /// Evaluates a number of a file at compile time; reports other expressions.
  std::optional<Constant> evaluate_constant(const FileUnit& unit, ast::ExprId id);
  void check_const(const DeclRef& decl);

  // Arithmetic on constants and sizes; sizes may also use parameters. Integers stay exact. A float
  // that is combined with a size in clamp, min or max is first made an integer.
  /// Applies an operator to numbers of the host. Returns an error value if the host has no such
  /// operator.
  Value host_scalar_op(ScalarOp op, std::span<const Value> values, Span span);
  /// Applies an operator to numbers some of which have a type from a fn's signature. The bits are
  /// those of that type's arithmetic. The host still knows the number if it provably fits.
  Value declared_scalar_op(ScalarOp op, const std::vector<Value>& args, Span span,
                           std::string_view name);
  /// Applies an operator to tables of constants, element by element; single numbers broadcast.
  Value as_table_op(ScalarOp op, std::span<const Value> args, Span span);

  // Exact numbers are literals, loop variables, and results of operators on them. They take the
  // type of the operand that they are combined with. Beside floats, a division of exact numbers is
  // a quotient with a fraction. Other numbers are recomputed in the type that they need.
  /// Recomputes `made_of` of an array of exact numbers, in the type that the result needs.
  Value made_of_exact(const Value& array, Span span,
                      const std::function<Value(const Value&)>& made_of);
  /// Replaces operands by their quotients if one operand is a float or the operator works on reals.
  std::vector<Value> with_quotients(ScalarOp op, std::vector<Value> args);
  /// The value of `result`, made of whole numbers on the host, beside floats.
  std::shared_ptr<const Value> quotient_of(ScalarOp op, const std::vector<Value>& args,
                                           const Value& result, Span span);
  /// How to repeat the operation in the type that its result needs, if converting the result would
  /// give another number.
  std::shared_ptr<const Remake> remake_of(ScalarOp op, const std::vector<Value>& args, Value result,
                                          Span span);
  /// The same for a size that was shifted, or is made of a shifted one.
  std::shared_ptr<const Remake> host_remake(ScalarOp op, const std::vector<Value>& args,
                                            const Value& result, Span span);
  /// Beside an integer with a type of its own, operands whose only type comes from a shift count
  /// become exact numbers.
  std::vector<Value> with_adaptables(ScalarOp op, std::vector<Value> args);
  /// The value of a name. `value` was computed once, so recomputing it must give the same number.
  Value as_named(const Value& value, Value read);
  /// How to recompute a choice on the device in the type that it needs.
  std::shared_ptr<const Remake> branch_remake(const Value& test, std::span<const Value> branches,
                                              Value result, Span span);
  /// How to recompute an array of exact numbers, not all constant, in the type that it needs.
  std::shared_ptr<const Remake> array_remake(const std::vector<Value>& elements, const Value& array,
                                             Span span);
  /// Adds the table's value beside floats, if some elements are quotients.
  Value with_table_quotient(Value table, const std::vector<Value>& elements);
  /// The integer, rounded toward zero, even beside floats.
  Value without_quotient(Value value);
  /// Converts an exact number to an operand of an operator of this type.
  Value as_operand(ScalarOp op, const Value& value, DType type);
  Value floor_div_of(Value a, Value b, const std::string& name, Span span);
  /// A size, or a number made of loop variables, that may be negative: its two's complement in an
  /// unsigned type.
  Value as_low_bits(const Value& value, DType type);
  /// A constant as a mask: -1 has all bits of the type set.
  Value as_mask(const Value& value, DType type);
  /// The low bits of a computed exact number, in a narrow type.
  Value narrow_bits(const Value& value, DType type);

 private:
  Value on_host(ast::ExprId id);
  Value known_const(const KnownConst& known, Span span);
  std::optional<KnownConst> as_known_const(const Value& value);
  Value elaborate_const_value(const DeclRef& decl, const ast::Const& node);
  Value host_unify(ScalarOp op, std::vector<HostExprId>& args, Span span);
  std::optional<HostExprId> big_shift(std::span<const HostExprId> args);
  /// The same without a report of overflow. Invalid if the host has no such operator.
  HostExprId host_op(ScalarOp op, std::vector<HostExprId> args, Span span);
  bool is_only_signed(const Value& value, DType type) const;
  Value signed_low_bits(const Value& value, DType type);
  Value exact_as_float(const Value& value);
  Value shift_count(const Value& count, DType type);
  Value named_quotient(const Value& value, Value read);

  std::vector<const void*> open_consts_;  // under elaboration
};

}  // namespace cinch::sema
