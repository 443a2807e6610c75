// Arguments of calls, sorted out: operands of the wanted rank, sizes, axes, flags and words.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Arguments : Part {
 public:
  using Part::Part;

  /// Operands and labelled arguments of a call; reports wrong labels and numbers of operands.
  CallArgs sort_args(const ast::Call& node, std::string_view name, Span span,
                     const std::vector<std::string_view>& labels, std::size_t min, std::size_t max);
  /// A labelled argument that is `true` or `false`; false where it is not given.
  bool flag(const CallArgs& args, std::string_view label);
  /// An operand: a typed array or scalar.
  Value operand(ast::ExprId id);
  /// The same of a value.
  Value operand_of(const Value& value);
  /// An operand that is an array; reports what is none.
  Value array_operand(ast::ExprId id, std::string_view name);
  /// The same of a value.
  Value array_of(const Value& value, std::string_view name);
  /// An operand that is a vector.
  Value vector_operand(ast::ExprId id, std::string_view name);
  /// An operand that is a matrix.
  Value matrix_operand(ast::ExprId id, std::string_view name);
  /// The same of a value.
  Value matrix_of(const Value& given, std::string_view name);
  /// An argument that is a size; reports what the host does not know or may be negative.
  std::optional<HostExprId> size_arg(ast::ExprId id, std::string_view name);
  /// An argument that is one of these names; anything else is reported.
  std::optional<std::string_view> word(ast::ExprId id, const std::vector<std::string_view>& words);
  /// A labelled argument that is a size; reports a missing one.
  std::optional<HostExprId> named_size(const CallArgs& args, std::string_view label);
  /// -1: no axis was asked for; nothing: a mistake was reported.
  std::optional<int> axis(const CallArgs& args, const Value& x);
  /// The axis of what runs along lines: of a matrix it must be given (else that is reported).
  std::optional<int> line_axis(const CallArgs& args, const Value& x);
  /// Reports an array without a constant size within a lambda.
  Value check_lambda_array(Value value);
  /// The argument `where:`, in the shape of the array that it selects from.
  std::optional<Value> mask(const CallArgs& args, const Type& shape);
};

}  // namespace cinch::sema
