// Tensors as sessions take and return them: a pointer, a type and a length. Calls accept f32, f16
// and bf16, and reject other types.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"

namespace cinch::rt {

/// Checks that sessions take this type. Errors: InvalidArgument.
inline Status check_tensor_dtype(DType dtype) {
  if (dtype == kF32 || dtype == kF16 || dtype == kBF16) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              "a tensor of " + dtype_name(dtype) + "; f32, f16 and bf16 are taken");
}

/// num_elems elements in row-major order. The memory needs no alignment beyond that of the element.
struct ConstTensorView {
  const void* data = nullptr;
  DType dtype = kF32;
  std::int64_t num_elems = 0;

  ConstTensorView() = default;
  ConstTensorView(const void* d, DType t, std::int64_t n) : data(d), dtype(t), num_elems(n) {}
  ConstTensorView(const std::vector<float>& values)
      : ConstTensorView(std::span<const float>(values)) {}
  ConstTensorView(std::span<const float> values)
      : data(values.data()), num_elems(static_cast<std::int64_t>(values.size())) {}
};

struct TensorView {
  void* data = nullptr;
  DType dtype = kF32;
  std::int64_t num_elems = 0;

  TensorView() = default;
  TensorView(void* d, DType t, std::int64_t n) : data(d), dtype(t), num_elems(n) {}
  TensorView(std::vector<float>& values) : TensorView(std::span<float>(values)) {}
  TensorView(std::span<float> values)
      : data(values.data()), num_elems(static_cast<std::int64_t>(values.size())) {}
  operator ConstTensorView() const { return {data, dtype, num_elems}; }
};

inline std::size_t byte_count(const ConstTensorView& view) {
  return static_cast<std::size_t>(view.num_elems * view.dtype.bits / 8);
}

}  // namespace cinch::rt
