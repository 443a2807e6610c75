// Making arrays.
#include "compiler/interp/array.h"

#include "runtime/core/check.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::interp {

Array make_scalar(DType dtype, std::uint64_t element) {
  return {dtype, 0, {1, 1}, {element}};
}

Array make_vector(DType dtype, std::int64_t size) {
  return {dtype, 1, {size, 1}, std::vector<std::uint64_t>(static_cast<std::size_t>(size))};
}

Array make_matrix(DType dtype, std::int64_t rows, std::int64_t cols) {
  return {
      dtype, 2, {rows, cols}, std::vector<std::uint64_t>(static_cast<std::size_t>(rows * cols))};
}

Array from_floats(std::span<const float> values) {
  Array array = make_vector(kF32, static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) array.bits[i] = element_of_f32(values[i]);
  return array;
}

std::vector<float> to_floats(const Array& array) {
  CINCH_CHECK(array.dtype == kF32, "not an array of f32");
  std::vector<float> values;
  values.reserve(array.bits.size());
  for (std::uint64_t element : array.bits) values.push_back(f32_of(element));
  return values;
}

}  // namespace cinch::interp
