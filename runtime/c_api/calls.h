// A call on tensors of a session: what the caller gave becomes views in the session's arrays, and
// then all of them run at once.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "runtime/c_api/handles.h"
#include "runtime/c_api/support.h"

namespace cinch::c_api {

struct Call {
  cinch_session* session;
  std::uint64_t step;
  const std::size_t* which;
  std::size_t count;

  bool is_on_gpu() const { return session->device == CINCH_CUDA; }
  std::size_t tensor_at(std::size_t place) const { return which == nullptr ? place : which[place]; }
  /// A call on a GPU serves all tensors. Errors: INVALID_ARGUMENT.
  CallStatus check_all() const;
  /// Of tensors of the call; the first ones name its stream. Errors: INVALID_ARGUMENT (another GPU,
  /// different streams).
  CallStatus take_place(std::int32_t device_number, void* stream, bool is_first) const;
  CallStatus payload_bounds(std::size_t* bytes) const;

  /// `tensors` of the session are f32 and become its `floats`. Errors: INVALID_ARGUMENT.
  CallStatus take_floats(const char* what) const;
  /// From `tensors` to `slots`, from `payloads` to `tensors` or, of what is added, `floats`, and
  /// from `floats` to `tensors`. Errors: those of ListSession.
  CallStatus encode() const;
  CallStatus decode() const;
  CallStatus decode_add() const;
  CallStatus finish() const;

 private:
  rt::ListCall on_list() const;
  CallStatus ended(const rt::ListStatus& status) const;
};

/// Runs `body` after it was looked at what the call was given.
template <typename Body>
cinch_status run_call(const Call& call, std::initializer_list<const void*> arrays,
                      cinch_error* error, const Body& body) {
  return guarded(error, [&]() -> CallStatus {
    const bool is_missing = std::any_of(arrays.begin(), arrays.end(),
                                        [](const void* array) { return array == nullptr; });
    if (call.count > 0 && is_missing)
      return fail(CINCH_INVALID_ARGUMENT, "an array of the call is null");
    if (call.session == nullptr) return fail(CINCH_INVALID_ARGUMENT, "session is null");
    if (call.is_on_gpu()) {
      if (CallStatus status = call.check_all(); !status) return status;
    }
    return use_alone(call.session->in_use, body);
  });
}

}  // namespace cinch::c_api
