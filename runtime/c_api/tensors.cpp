// Checks on tensor descriptors; see tensors.h.
#include "runtime/c_api/tensors.h"

#include <cstdint>

namespace cinch::c_api {
namespace {

constexpr std::int64_t kMaxElems = (std::int64_t{1} << 32) - 1;
constexpr std::int32_t kMaxDims = 64;

// A dimension of one element may have any stride.
CallStatus check_strides(const cinch_tensor& tensor) {
  std::int64_t dense = 1;
  for (std::int32_t d = tensor.num_dims - 1; d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != dense) {
      return fail(CINCH_INVALID_ARGUMENT, "dimension " + std::to_string(d) + " has stride " +
                                              std::to_string(tensor.strides[d]) +
                                              ", a dense tensor has " + std::to_string(dense));
    }
    dense *= tensor.shape[d];
  }
  return rt::Ok{};
}

}  // namespace

std::optional<DType> dtype_of(cinch_dtype type) {
  switch (type) {
    case CINCH_F32:
      return kF32;
    case CINCH_F16:
      return kF16;
    case CINCH_BF16:
      return kBF16;
  }
  return std::nullopt;
}

CallResult<Shape> shape_of(const cinch_tensor& tensor) {
  if (tensor.num_dims < 0 || tensor.num_dims > kMaxDims) {
    return fail(CINCH_INVALID_ARGUMENT, std::to_string(tensor.num_dims) + " dimensions");
  }
  if (tensor.num_dims > 0 && tensor.shape == nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "shape is null");
  }
  Shape shape;
  bool is_empty = false;
  for (std::int32_t d = 0; d < tensor.num_dims; ++d) {
    const std::int64_t size = tensor.shape[d];
    std::int64_t& factor = d == 0 ? shape.rows : shape.cols;
    if (size < 0 || size > kMaxElems || __builtin_mul_overflow(factor, size, &factor)) {
      return fail(CINCH_INVALID_ARGUMENT,
                  "dimension " + std::to_string(d) + " has size " + std::to_string(size));
    }
    is_empty |= size == 0;
  }
  const bool is_too_large = !is_empty && shape.cols > kMaxElems / shape.rows;
  if (is_too_large) return fail(CINCH_INVALID_ARGUMENT, "2^32 elements or more");
  const bool has_elems = !is_empty && tensor.num_dims > 0;
  if (has_elems && tensor.strides != nullptr) {
    CINCH_TRY(check_strides(tensor));
  }
  return shape;
}

CallStatus check_device(cinch_device given, cinch_device device) {
  if (given == device) return rt::Ok{};
  if (given != CINCH_CPU && given != CINCH_CUDA) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(given));
  }
  return fail(CINCH_INVALID_ARGUMENT, device == CINCH_CPU
                                          ? "a tensor on a GPU, the program is for CPUs"
                                          : "a tensor on the CPU, the program is for a GPU");
}

CallResult<DescribedTensor> described_tensor(const cinch_tensor* tensors, std::size_t index,
                                             cinch_device device) {
  const auto tensor = read_struct(entry(tensors, index), sizeof *tensors, "tensor");
  CINCH_TRY(tensor);
  CINCH_TRY(check_device(tensor->device, device));
  const auto dtype = dtype_of(tensor->dtype);
  if (!dtype) return fail(CINCH_INVALID_ARGUMENT, "type " + std::to_string(tensor->dtype));
  const auto shape = shape_of(*tensor);
  CINCH_TRY(shape);
  return DescribedTensor{*tensor, *dtype, shape->rows * shape->cols};
}

CallResult<rt::TensorView> view_of(const DescribedTensor& tensor) {
  if (tensor.given.data == nullptr && tensor.num_elems > 0) {
    return fail(CINCH_INVALID_ARGUMENT, "data is null");
  }
  const auto size = static_cast<std::uintptr_t>(tensor.dtype.bits / 8);
  if (tensor.num_elems > 0 && reinterpret_cast<std::uintptr_t>(tensor.given.data) % size != 0) {
    return fail(CINCH_INVALID_ARGUMENT, "data is not aligned: its address is not a multiple of " +
                                            std::to_string(size) + ", the bytes of an element");
  }
  return rt::TensorView(tensor.given.data, tensor.dtype, tensor.num_elems);
}

CallResult<rt::TensorView> tensor_view(const cinch_tensor* tensors, std::size_t index,
                                       cinch_device device) {
  return described_tensor(tensors, index, device).and_then(view_of);
}

}  // namespace cinch::c_api
