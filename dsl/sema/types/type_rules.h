// Which type a value has, and which types fit one another. Pure rules: nothing here reports,
// builds an expression or looks at names.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "dsl/sema/elaboration/mode.h"
#include "dsl/sema/sizes/size_prover.h"
#include "dsl/sema/value.h"

namespace cinch::sema {

/// min, max and clamp, with which sizes are bounded.
bool bounds(ScalarOp op);
/// The language rounds floats alone.
bool is_for_reals(ScalarOp op);

class TypeRules {
 public:
  TypeRules(HostExprPool& pool, SizeProver& prover, const Mode& mode)
      : pool_(pool), prover_(prover), mode_(mode) {}

  /// Proved for every n, parameter and step.
  bool is_known_to_fit(HostExprId number, DType type) const;
  /// The type without a conversion of exact numbers: that of the elements.
  std::optional<DType> own_dtype(const Value& value) const;
  /// A table of bools alone.
  bool is_bool_table(const Value& value) const;
  /// A float, or a number with a point.
  bool is_real(const Value& value) const;
  /// The type in which two operands are joined; nothing where no type holds both.
  std::optional<DType> meet(const Value& a, const Value& b) const;
  /// Would `coerce` convert it without a report?
  bool can_coerce(const Value& value, DType to) const;
  /// The shape of any value. Only typed values say the element type.
  Type value_type(const Value& value) const;
  /// The type that holds a number of the host exactly. Values that a body computes are at most f32.
  DType wide_type(const Value& value) const;
  /// What exact numbers are among themselves.
  DType type_of_numbers(const std::vector<Value>& numbers) const;
  /// All constants that a choice chooses from, also those of inner choices.
  std::vector<HostExprId> constants_of(std::span<const Value> choices) const;
  /// Does an i32 hold the exact number? Where such numbers meet nothing else they are i32.
  bool is_small_number(const Value& value) const;
  /// Can the type hold the number? Only constants are looked at.
  bool has_room(const Value& number, DType type) const;
  /// Is one of its constants a quotient with a fraction?
  bool has_fraction(const Value& value) const;
  /// Is it a size that may be negative?
  bool may_be_negative(const Value& value) const;
  /// Is the result an integer that still takes the type it meets, as its operands do?
  bool stays_adaptable(ScalarOp op, std::span<const Value> args) const;
  /// Numbers with a point, f32 unless they meet another type.
  bool is_exact_float(const Value& value) const;

 private:
  HostExprPool& pool() const { return pool_; }

  HostExprPool& pool_;
  SizeProver& prover_;
  const Mode& mode_;
};

}  // namespace cinch::sema
