// A call on tensors of a session. It turns what the caller passed into views in the session's
// arrays, then runs all tensors at once.
#pragma once

#include <initializer_list>
#include <optional>

#include "runtime/c_api/handles.h"
#include "runtime/call/list_call.h"

namespace cinch::c_api {
// Converts descriptors of the C API to what sessions take, and checks all their fields.

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

struct Call {
  cinch_session* session;
  std::uint64_t step;
  const std::size_t* which;
  std::size_t count;

  bool is_on_gpu() const { return session->device == CINCH_CUDA; }
  std::size_t tensor_at(std::size_t place) const { return which == nullptr ? place : which[place]; }
  /// Checks that the call takes all tensors of the session, as a call on a GPU must. Errors:
  /// INVALID_ARGUMENT.
  CallStatus check_all() const;
  /// Notes the stream of the call's tensors; the first tensors of a call name it. Errors:
  /// INVALID_ARGUMENT (another GPU, different streams).
  CallStatus take_place(std::int32_t device_number, void* stream, bool is_first) const;
  CallStatus payload_bounds(std::size_t* bytes) const;

  /// Checks that `tensors` of the session are f32, and makes them its `floats`. Errors:
  /// INVALID_ARGUMENT.
  CallStatus take_floats(const char* what) const;
  /// encode() reads `tensors` and writes `slots`. Decoding reads `payloads` and writes `tensors`;
  /// decoding that adds writes `floats`. Finishing reads `floats` and writes `tensors`. Errors:
  /// those of ListSession.
  CallStatus encode() const;
  CallStatus decode() const;
  CallStatus decode_add() const;
  CallStatus finish() const;

 private:
  rt::ListCall on_list() const;
  CallStatus ended(const rt::ListStatus& status) const;
};

/// Checks the arguments of the call, then runs `body`.
template <typename Body>
cinch_status run_call(const Call& call, std::initializer_list<const void*> arrays,
                      cinch_error* error, const Body& body) {
  return guarded(error, [&]() -> CallStatus {
    const bool is_missing = std::any_of(arrays.begin(), arrays.end(),
                                        [](const void* array) { return array == nullptr; });
    if (call.count > 0 && is_missing) return invalid("an array of the call is null");
    if (call.session == nullptr) return invalid("session is null");
    if (call.is_on_gpu()) {
      CINCH_TRY(call.check_all());
    }
    return use_alone(call.session->in_use, body);
  });
}

}  // namespace cinch::c_api
