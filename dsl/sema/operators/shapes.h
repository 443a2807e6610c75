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
  /// The shape that operands of these shapes give together: numpy's rules, where a size is 1 only
  /// if it is that constant. Reports and gives nothing where they do not fit.
  std::optional<Type> broadcast(std::span<const Value> args, Span span, std::string_view name);
  /// The same elements in the shape of another type.
  Value reshaped(const Value& value, const Type& type, Span span);
  /// The value's elements repeated to fill a shape that it broadcasts to.
  Value repeated(const Value& value, const Type& shape, Span span);

 private:
  Type with_rank_of(const Type& type, const Type& other);
  std::optional<Type> joined(const Type& a, const Type& b);
};

}  // namespace cinch::sema
