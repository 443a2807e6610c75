// Converts descriptors of the C API to what sessions take, and checks all their fields.
#pragma once
#include <cstddef>
#include <optional>

#include "runtime/c_api/support.h"
#include "runtime/call/tensor_view.h"

namespace cinch::c_api {

/// A vector of n elements is [n, 1]; other tensors are [first dimension, product of the rest].
struct Shape {
  std::int64_t rows = 1, cols = 1;
};

/// Returns the tensor's shape. Errors: INVALID_ARGUMENT (negative sizes, 2^32 elements or more,
/// strides that are not dense).
CallResult<Shape> shape_of(const cinch_tensor& tensor);

/// Returns nothing if `type` is not a valid type.
std::optional<DType> dtype_of(cinch_dtype type);

/// Checks that `given` is the program's device. Errors: INVALID_ARGUMENT, UNAVAILABLE (an unknown
/// device).
CallStatus check_device(cinch_device given, cinch_device device);

/// A tensor without its data.
struct DescribedTensor {
  cinch_tensor given;
  DType dtype;
  std::int64_t num_elems;
};
/// Reads entry `index` of the caller's array and checks its device. Errors: as above,
/// INVALID_ARGUMENT (an unknown type, another device), UNAVAILABLE (an unknown device).
CallResult<DescribedTensor> described_tensor(const cinch_tensor* tensors, std::size_t index,
                                             cinch_device device);

/// Adds the tensor's data. Errors: INVALID_ARGUMENT (null although there are elements).
CallResult<rt::TensorView> view_of(const DescribedTensor& tensor);

/// Does both. Errors: as above.
CallResult<rt::TensorView> tensor_view(const cinch_tensor* tensors, std::size_t index,
                                       cinch_device device = CINCH_CPU);

}  // namespace cinch::c_api
