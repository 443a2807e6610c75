// Shapes: broadcasting of operands, rows of matrices, and reshapes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Shapes : Part {
 public:
  using Part::Part;

  /// A vector beside a matrix of as many columns is a row of it.
  bool is_row_of(const Type& a, const Type& b);
  /// A vector as the row of a matrix that it meets.
  Value as_row(const Value& value, const Type& shape);
  /// The shape that operands of these shapes give together.
  std::optional<Type> broadcast(std::span<const Value> args, Span span, std::string_view name);
  /// The same elements in the shape of another type.
  Value reshaped(const Value& value, const Type& type, Span span);
};

}  // namespace cinch::sema
