// What every call of the C API uses: it reads and writes structs of the caller's version, reports
// errors in the caller's memory, and lets no exception out.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/c_api/cinch.h"
#include "runtime/core/check.h"
#include "runtime/core/error.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/core/use_flag.h"

namespace cinch::c_api {

struct CallError {
  CallError(cinch_status code, std::string text) : status(code), message(std::move(text)) {}
  /// Implicit: TRY makes it from an error of the runtime.
  CallError(const rt::Error& error);  // NOLINT(google-explicit-constructor)

  cinch_status status = CINCH_INTERNAL;
  std::string message;
  std::int64_t native_code = 0;
  std::size_t tensor = CINCH_NO_TENSOR;
};
template <typename T>
using CallResult = tl::expected<T, CallError>;
using CallStatus = CallResult<rt::Ok>;

cinch_status status_of(rt::ErrorKind kind);
tl::unexpected<CallError> fail(cinch_status status, std::string message);
/// INVALID_ARGUMENT.
inline tl::unexpected<CallError> invalid(std::string message) {
  return fail(CINCH_INVALID_ARGUMENT, std::move(message));
}
/// Makes an error of the tensor at this index of the call's arrays.
tl::unexpected<CallError> fail_at(std::size_t place, CallError error);
CallStatus done(const rt::Status& status);

/// OUT_OF_RANGE: "tensor 3 of 2".
CallError out_of_range(const char* what, std::size_t index, std::size_t count);
/// The same if the index is not below the count.
CallStatus check_index(std::size_t index, std::size_t count, const char* what);

/// Writes the error to the caller's memory (may be null), keeps the whole message for
/// cinch_error_message, and returns the status.
cinch_status report(const CallError& error, cinch_error* to);
cinch_status report(cinch_status status, std::string_view message, cinch_error* to);

/// Runs `body`, which returns a CallStatus, in the default floating-point environment, and reports
/// its error. Threads that it starts have that environment, too.
template <typename Body>
cinch_status guarded(cinch_error* error, const Body& body) noexcept {
  const rt::DefaultFloatEnvironment environment;
  try {
    CallStatus status = body();
    return status ? CINCH_OK : report(status.error(), error);
  } catch (const InternalError& caught) {
    const bool is_limit = caught.kind() == InternalErrorKind::Limitation;
    return report(is_limit ? CINCH_UNAVAILABLE : CINCH_INTERNAL, caught.what(), error);
  } catch (const std::bad_alloc&) {
    return report(CINCH_OUT_OF_MEMORY, "no memory", error);
  } catch (const std::exception& caught) {
    return report(CINCH_INTERNAL, caught.what(), error);
  } catch (...) {
    return report(CINCH_INTERNAL, "an exception of an unknown type", error);
  }
}

/// Runs `body` if no other call holds the flag. Errors: INVALID_ARGUMENT.
template <typename Body>
auto use_alone(rt::UseFlag& in_use, const Body& body) -> decltype(body()) {
  const rt::Use use(in_use);
  if (use) return body();
  return invalid("the session is in use by another thread: it takes one call at a time");
}

/// Reads the caller's struct as this version has it: fields that the caller's version lacks become
/// zero. `least` is the size of the struct's first version.
template <typename T>
CallResult<T> read_struct(const T* given, std::size_t least, const char* name) {
  T value{};
  if (given == nullptr) return invalid(std::string(name) + " is null");
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < least) {
    return invalid(std::string(name) + ": struct_size is " + std::to_string(size) + ", at least " +
                   std::to_string(least) + " is expected");
  }
  std::memcpy(&value, given, std::min(size, sizeof value));
  return value;
}

/// Fills the caller's struct, whose struct_size stays.
template <typename T>
CallStatus write_struct(T value, T* to, const char* name) {
  const auto given = TRY(read_struct(to, sizeof(std::size_t), name));
  value.struct_size = given.struct_size;
  std::memcpy(to, &value, std::min(value.struct_size, sizeof value));
  return rt::Ok{};
}

/// Copies bytes to the caller's memory. On entry `size` is the room at `data`; on return it is the
/// size needed. With `data` null it only sets `size`. Errors: INVALID_ARGUMENT (null, too small).
CallStatus copy_out(std::span<const std::uint8_t> bytes, const char* name, void* data,
                    std::size_t* size);

/// Entry `index` of an array of structs of the caller's version.
template <typename T>
T* entry(T* array, std::size_t index) {
  if (array == nullptr) return nullptr;
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(array) + index * array->struct_size);
}

/// Returns the error of the table that CINCH_TUNING names. A faulty table at the default place is
/// no error here: the built-in numbers are used.
CallStatus check_named_tuning();

}  // namespace cinch::c_api
