// Run-time errors: values, never exceptions, prints or aborts.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace cinch::rt {

enum class ErrorKind : std::uint8_t {
  /// An argument of a call does not fit: wrong type, shape, null pointer.
  InvalidArgument,
  /// A parameter, index or size outside its range.
  OutOfRange,
  /// Host arithmetic on sizes left 64 bits.
  Overflow,
  /// A payload that is truncated, too long, changed, or of another compressor.
  CorruptPayload,
  /// A file (image, .npy, state) whose contents are not well formed.
  CorruptFile,
  /// Written by another format version.
  VersionMismatch,
  /// A device-side check, or an `assert` of the program.
  CheckFailed,
  Io,
  OutOfMemory,
  /// Valid, but not available here: no such device, no such library.
  Unavailable,
  Cancelled,
  /// No progress within the time allowed.
  TimedOut,
  /// A driver or a library returned an error; native_code holds it.
  Device,
  /// A bug of Cinch, caught at the interface.
  Internal,
};

/// The name of a kind in messages and in the C API: "corrupt payload".
const char* error_kind_name(ErrorKind kind);

struct Error {
  ErrorKind kind = ErrorKind::Internal;
  /// Lower case, no full stop; says what was found and names the field or argument.
  std::string message;
  std::int64_t native_code = 0;
};

template <typename T>
using Result = tl::expected<T, Error>;
/// Success without a value: `return Ok{}`.
struct Ok {};
using Status = Result<Ok>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message,
                                  std::int64_t native_code = 0) {
  return tl::unexpected<Error>(Error{kind, std::move(message), native_code});
}
/// An argument of a call does not fit.
inline tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorKind::InvalidArgument, std::move(message));
}

}  // namespace cinch::rt

/// The value of a result; an error returns to the caller: const auto size = TRY(size_of(x));
/// Clang's statement expressions make it an expression.
#define TRY(...)                                                                  \
  ({                                                                              \
    auto&& tried_result = (__VA_ARGS__);                                          \
    if (!tried_result.has_value()) return ::tl::unexpected(tried_result.error()); \
    *std::forward<decltype(tried_result)>(tried_result);                          \
  })

/// Returns the error to the caller if the result is one: CINCH_TRY(check(x)); CINCH_TRY(known);
#define CINCH_TRY(...)                                                  \
  do {                                                                  \
    if (auto&& tried_result = (__VA_ARGS__); !tried_result.has_value()) \
      return ::tl::unexpected(tried_result.error());                    \
  } while (false)
