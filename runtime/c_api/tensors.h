// Descriptors of the C API to what sessions take, with all that is said of them checked.
#pragma once
#include <cstddef>
#include <optional>

#include "runtime/c_api/support.h"
#include "runtime/call/tensor_view.h"

namespace cinch::c_api {

/// A vector of n elements is [n, 1]; else the first dimension by the product of the rest.
struct Shape {
  std::int64_t rows = 1, cols = 1;
};

/// Errors: INVALID_ARGUMENT (negative sizes, 2^32 elements or more, strides that are not dense).
CallResult<Shape> shape_of(const cinch_tensor& tensor);

/// Empty for a type that is none.
std::optional<DType> dtype_of(cinch_dtype type);

/// Is what is `given` on the program's device? Errors: INVALID_ARGUMENT, UNAVAILABLE (a device that
/// is none).
CallStatus check_device(cinch_device given, cinch_device device);

/// A tensor whose data is not looked at.
struct DescribedTensor {
  cinch_tensor given;
  DType dtype;
  std::int64_t num_elems;
};
/// Entry `index` of the caller's array, which is on the device. Errors as above; INVALID_ARGUMENT
/// (a type that is none, another device), UNAVAILABLE (a device that is none).
CallResult<DescribedTensor> described_tensor(const cinch_tensor* tensors, std::size_t index,
                                             cinch_device device);

/// With its data. Errors: INVALID_ARGUMENT (null where there are elements).
CallResult<rt::TensorView> view_of(const DescribedTensor& tensor);

/// Both. Errors as above.
CallResult<rt::TensorView> tensor_view(const cinch_tensor* tensors, std::size_t index,
                                       cinch_device device = CINCH_CPU);

}  // namespace cinch::c_api
