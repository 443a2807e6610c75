// Element-wise operators: operand types, and the choice between host and device.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class ScalarOperators : Part {
 public:
  using Part::Part;

  /// `-x`, `!x`.
  Value unary(const ast::Unary& node, Span span);
  /// `a + b` and its like.
  Value binary(const ast::Binary& node, Span span);
  /// The same of values.
  Value binary_op(ast::BinaryOp op, const Value& a, const Value& b, Span span);
  /// An element-wise operator: on the host where it can be, else on the device.
  Value scalar_op(ScalarOp op, std::vector<Value> args, Span span, std::string_view name);
  /// Reports operands that do not go together. `joins_types`: the operator wants one type of both,
  /// so that a conversion may help.
  Value cannot_combine(std::string_view name, const Value& a, const Value& b, Span span,
                       bool joins_types = true);
  /// The type in which the operands are joined; reports and gives nothing where there is none.
  std::optional<DType> operand_type(ScalarOp op, const std::vector<Value>& args, Span span,
                                    std::string_view name);
  /// An element-wise operator on the device.
  Value typed_scalar_op(ScalarOp op, std::vector<Value> args, Span span, std::string_view name);

 private:
  void warn_of_chain(const ast::Binary& node, Span span);
  std::vector<Value> with_big_settled(ScalarOp op, std::vector<Value> args);
  std::optional<DType> cannot_apply(const Value& value, std::string_view name);
  std::optional<DType> one_operand_type(ScalarOp op, const Value& arg, std::string_view name);
};

}  // namespace cinch::sema
