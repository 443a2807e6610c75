// Calls on lists of tensors: their arguments, and errors with the tensor at fault.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/call/tensor_facts.h"
#include "runtime/core/numbers/dtype.h"

namespace cinch::rt {
// Tensors as sessions take and return them: a pointer, a type and a length. Calls accept f32, f16
// and bf16, and reject other types.

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

struct ListTensor {
  std::int64_t rows = 0, cols = 1;      // a vector of n elements is [n, 1]
  std::uint32_t tensor = 0, piece = 0;  // numbers for draws: different ones draw differently
};

inline constexpr std::size_t kNoPlace = SIZE_MAX;

/// An error, and the entry of the call's arrays at fault.
struct ListError {
  Error error;
  std::size_t place = kNoPlace;
};
template <typename T>
using ListResult = tl::expected<T, ListError>;
using ListStatus = ListResult<Ok>;

struct ListCall {
  std::uint64_t step = 0;
  /// Numbers of the call's tensors, each at most once; empty: 0 … number of entries - 1.
  std::span<const std::size_t> which;
};

/// The place of an encoded payload. It is copied to `room`; if that is empty, `bytes` points into
/// the list and is valid until its next call. `bytes` is set in both cases.
struct PayloadSlot {
  std::span<std::uint8_t> room;
  std::span<const std::uint8_t> bytes;
};

using PayloadBytes = std::span<const std::uint8_t>;

/// As guarded_use(), for lists.
template <typename Call>
auto guarded_list(UseFlag& in_use, const Call& call) -> decltype(call()) {
  decltype(call()) result = tl::unexpected<ListError>(ListError{});
  Status status = guarded_use(in_use, [&]() -> Status {
    result = call();
    return Ok{};
  });
  if (!status) return tl::unexpected<ListError>(ListError{std::move(status.error())});
  return result;
}

}  // namespace cinch::rt
