// Descriptors of the C API to what sessions take, with all that is said of them checked.
#pragma once
#include <cstddef>

#include "runtime/c_api/support.h"
#include "runtime/session/tensor_view.h"

namespace cinch::c_api {

/// A vector of n elements is [n, 1]; else the first dimension by the product of the rest.
struct Shape {
  std::int64_t rows = 1, cols = 1;
};

/// Errors: INVALID_ARGUMENT (negative sizes, 2^32 elements or more, strides that are not dense).
CallResult<Shape> shape_of(const cinch_tensor& tensor);

/// Entry `index` of the caller's array. Errors as above; INVALID_ARGUMENT (null where there are
/// elements, a type that is none), UNAVAILABLE (a device).
CallResult<rt::TensorView> tensor_view(const cinch_tensor* tensors, std::size_t index);

}  // namespace cinch::c_api
