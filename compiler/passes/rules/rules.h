// Local rules. Each looks at one op and the definitions of its operands, and returns a value that
// can replace the op's one result, or nothing. A rule may build ops before the op only if it
// returns a value. Every rule keeps all bits (except NaN payloads, which no program can see).
#pragma once

#include <optional>
#include <span>

#include "compiler/ir/builder.h"
#include "compiler/ir/ir.h"

namespace cinch::passes {

/// What rules ask about the op under examination.
class Matcher {
 public:
  Matcher(ir::Builder& builder, const ir::Op& op) : b_(builder), op_(op) {}

  ir::Builder& builder() const { return b_; }
  const ir::Op& op() const { return op_; }
  ir::ValueId operand(std::size_t i) const { return op_.operands[i]; }
  const ir::Type& type(ir::ValueId value) const { return b_.type(value); }
  const ir::Type& result_type() const { return b_.type(op_.results[0]); }
  bool is_map(ScalarOp op) const {
    return op_.kind == ir::OpKind::map && op_.attrs.scalar_op == op;
  }

  /// The op that defines a value, if it is of this kind.
  const ir::Op* defined_by(ir::ValueId value, ir::OpKind kind) const;
  const ir::Op* defined_by_map(ir::ValueId value, ScalarOp op) const;
  /// The encoded element, if the value is a constant scalar or a fill of one.
  std::optional<std::uint64_t> constant(ir::ValueId value) const;
  /// Is the value that number everywhere? (-0 is not 0.)
  bool is_number(ir::ValueId value, double number) const;
  /// The value, repeated to the shape of the op's result if need be.
  ir::ValueId as_result(ir::ValueId value) const;
  /// A constant of the result's element type in the result's shape.
  ir::ValueId constant_result(std::uint64_t element) const;

 private:
  ir::Builder& b_;
  const ir::Op& op_;
};

using Rule = std::optional<ir::ValueId> (*)(const Matcher&);

std::span<const Rule> constant_rules();    // fold_constants.cpp
std::span<const Rule> arithmetic_rules();  // drop_arithmetic.cpp
std::span<const Rule> shape_rules();       // drop_shapes.cpp

}  // namespace cinch::passes
