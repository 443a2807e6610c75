// Exact numbers: what was divided and meets floats is a quotient, and what is made of literals and
// loop variables is made anew in the type that it meets.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class ExactNumbers : Part {
 public:
  using Part::Part;

  /// What `made_of` makes of an array of exact numbers, in the type that it meets.
  Value made_of_exact(const Value& array, Span span,
                      const std::function<Value(const Value&)>& made_of);
  /// Where a float or an operator of reals is met, replaces operands by their quotients.
  std::vector<Value> with_quotients(ScalarOp op, std::vector<Value> args);
  /// The value that `result`, made of whole numbers on the host, has where it meets floats.
  std::shared_ptr<const Value> quotient_of(ScalarOp op, const std::vector<Value>& args,
                                           const Value& result, Span span);
  /// The same operation in the type that its result meets, where converting the result would give
  /// another number.
  std::shared_ptr<const Remake> remake_of(ScalarOp op, const std::vector<Value>& args, Value result,
                                          Span span);
  /// The same for a size that was shifted, or is made of a shifted one.
  std::shared_ptr<const Remake> host_remake(ScalarOp op, const std::vector<Value>& args,
                                            const Value& result, Span span);
  /// Beside an integer with a type of its own, operands that only have the type of a shift count
  /// become exact numbers.
  std::vector<Value> with_adaptables(ScalarOp op, std::vector<Value> args);
  /// The value of a name: `value` was computed once, so making it anew must give the same number.
  Value as_named(const Value& value, Value read);
  /// A choice on the device, made in the type that it meets.
  std::shared_ptr<const Remake> branch_remake(const Value& test, std::span<const Value> branches,
                                              Value result, Span span);
  /// An array of exact numbers, not all of them constants, made in the type that it meets.
  std::shared_ptr<const Remake> array_remake(const std::vector<Value>& elements, const Value& array,
                                             Span span);
  /// Adds the value that the table has where it meets floats, if some elements are quotients.
  Value with_table_quotient(Value table, const std::vector<Value>& elements);
  /// The whole number, cut toward zero, whatever it meets.
  Value without_quotient(Value value);
  /// An exact number as an operand of an operator of this type.
  Value as_operand(ScalarOp op, const Value& value, DType type);
  /// The quotient rounded down.
  Value floor_div_of(Value a, Value b, const std::string& name, Span span);
  /// A size, or a number made of loop variables, that may be negative, as its two's complement in
  /// an unsigned type.
  Value as_low_bits(const Value& value, DType type);
  /// A constant as a mask: -1 has all bits of the type set.
  Value as_mask(const Value& value, DType type);
  /// The low bits of an exact number that is computed, in a narrow type.
  Value narrow_bits(const Value& value, DType type);

 private:
  bool is_only_signed(const Value& value, DType type) const;
  Value signed_low_bits(const Value& value, DType type);
  Value exact_as_float(const Value& value);
  Value shift_count(const Value& count, DType type);
  Value named_quotient(const Value& value, Value read);
  Value as_natural(const Value& value, DType type);
};

}  // namespace cinch::sema
