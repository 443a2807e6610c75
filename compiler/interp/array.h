// Arrays of the interpreter: a type, concrete sizes, and exact element values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/numbers/dtype.h"

namespace cinch::interp {

/// Row-major. `bits` holds one element in each entry, encoded as compiler/ir/scalar_eval.h says:
/// integers extended to 64 bits, floats as their own bits in the low end.
struct Array {
  DType dtype = kF32;
  std::uint8_t rank = 0;
  std::int64_t dims[2] = {1, 1};  // those beyond the rank are 1
  std::vector<std::uint64_t> bits;

  std::int64_t size() const { return dims[0] * dims[1]; }
  /// Of a matrix; a vector is one row, a scalar one element.
  std::int64_t rows() const { return rank == 2 ? dims[0] : 1; }
  std::int64_t cols() const { return rank == 2 ? dims[1] : dims[0]; }
  friend bool operator==(const Array&, const Array&) = default;
};

Array make_scalar(DType dtype, std::uint64_t element);
/// `size` elements of zero bits.
Array make_vector(DType dtype, std::int64_t size);
Array make_matrix(DType dtype, std::int64_t rows, std::int64_t cols);

/// f32 values as an array and back (`to_floats` takes f32 arrays only: checked).
Array from_floats(std::span<const float> values);
std::vector<float> to_floats(const Array& array);

}  // namespace cinch::interp
