// Arrays of the interpreter: a type, concrete sizes, and exact element values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/numbers/dtype.h"

namespace cinch::interp {

/// Row-major. Each entry of `bits` is one element, encoded as in
/// runtime/core/numbers/scalar_eval.h: integers extended to 64 bits, floats as their own bits in
/// the low end.
struct Array {
  DType dtype = kF32;
  std::uint8_t rank = 0;
  std::int64_t dims[2] = {1, 1};  // dimensions beyond the rank are 1
  std::vector<std::uint64_t> bits;

  std::int64_t size() const { return dims[0] * dims[1]; }
  /// For a matrix; a vector is one row, a scalar one element.
  std::int64_t rows() const { return rank == 2 ? dims[0] : 1; }
  std::int64_t cols() const { return rank == 2 ? dims[1] : dims[0]; }
  friend bool operator==(const Array&, const Array&) = default;
};

Array make_scalar(DType dtype, std::uint64_t element);
/// `size` elements whose bits are all zero.
Array make_vector(DType dtype, std::int64_t size);
Array make_matrix(DType dtype, std::int64_t rows, std::int64_t cols);

/// Converts f32 values to an array and back (`to_floats` takes only f32 arrays: checked).
Array from_floats(std::span<const float> values);
std::vector<float> to_floats(const Array& array);

}  // namespace cinch::interp
