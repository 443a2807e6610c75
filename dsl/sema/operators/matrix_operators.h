// Matrix operators: products, orthonormal bases and Hadamard transforms.
#pragma once

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class MatrixOperators : Part {
 public:
  using Part::Part;

  /// `a @ b`.
  Value matmul(const Value& a, const Value& b, Span span);
  /// Any other of them.
  Value matrix_call(BuiltinId id, const CallArgs& args);
};

}  // namespace cinch::sema
