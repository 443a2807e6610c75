// Constants, and arithmetic of the host.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {
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
