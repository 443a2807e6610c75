// Bodies of tensor_view.h.
#include "runtime/call/tensor_view.h"

namespace cinch::rt {

Status check_tensor_dtype(DType dtype) {
  if (dtype == kF32 || dtype == kF16 || dtype == kBF16) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              "a tensor of " + dtype_name(dtype) + "; f32, f16 and bf16 are taken");
}

}  // namespace cinch::rt
