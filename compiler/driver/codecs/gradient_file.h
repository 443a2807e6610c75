// Gradients: their shapes, their .npy files, and how far a decoded one is from its original.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/payload/npy.h"

namespace cinch::driver {

// The shape of a tensor for a program: a vector, or a matrix of the first dimension by the rest.
struct Shape {
  std::int64_t rows = 0, cols = 1;
  std::int64_t num_elems() const { return rows * cols; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// Reads a file. `dtype` is "" or "bf16" (to read uint16 as bf16). Throws CommandError.
rt::NpyArray read_gradient(const std::string& path, const std::string& dtype);
// Reads all files; they must agree in shape and type.
std::vector<rt::NpyArray> read_gradients(const std::vector<std::string>& paths,
                                         const std::string& dtype);
Shape shape_of(const rt::NpyArray& array, bool is_matrix);
rt::ConstTensorView view_of(const rt::NpyArray& array);
// The elements as f32.
std::vector<float> to_f32(rt::ConstTensorView tensor);
// Repeats the whole tensor until it fills `size_bytes` (at least once), as a vector.
rt::NpyArray repeat_to(const rt::NpyArray& array, std::int64_t size_bytes);
void write_gradient(const std::string& path, std::span<const float> values,
                    std::vector<std::int64_t> shape);

// ‖x - y‖ / ‖x‖ and the cosine of the angle between them, summed in double; NaN where undefined.
struct Distance {
  double relative_error = 0, cosine = 0;
};
Distance distance(std::span<const float> x, std::span<const float> y);

/// The columns of a matrix with so many elements: the requested number, else the one closest to a
/// square. Throws CommandError if the
/// elements are not a multiple of the request.
std::int64_t matrix_columns(std::int64_t elements, std::optional<std::int64_t> asked);

}  // namespace cinch::driver
