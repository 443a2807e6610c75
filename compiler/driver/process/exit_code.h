// How a command ends. A CommandError is thrown by any part of the driver that cannot go on for a
// reason of the user's, of the data's or of the machine's; main prints it and ends with its code.
// Faults of Cinch itself are InternalError.
#pragma once
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/service/service_error.h"
#include "runtime/core/error.h"

namespace cinch::driver {

enum class ExitCode : int {
  Done = 0,
  AtFault = 1,      // the program, data or payload; a diagnostic says where
  Usage = 2,        // of the command line
  Unavailable = 3,  // the machine or this version lacks what was asked for
  Internal = 4,     // a fault of Cinch itself
};

// A code for people and scripts: `cinch help exit-codes`, and the `kind` of an error as JSON.
struct ExitCodeMeaning {
  ExitCode code;
  std::string_view kind, text;
};
std::span<const ExitCodeMeaning> exit_code_meanings();
const ExitCodeMeaning& meaning_of(ExitCode code);

class CommandError : public std::exception {
 public:
  // `message` without "error: "; empty where diagnostics were printed already.
  CommandError(ExitCode code, std::string message, std::optional<rt::ErrorKind> kind = std::nullopt)
      : code_(code), message_(std::move(message)), kind_(kind) {}
  ExitCode code() const { return code_; }
  // Of an error of the runtime.
  std::optional<rt::ErrorKind> kind() const { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ExitCode code_;
  std::string message_;
  std::optional<rt::ErrorKind> kind_;
};

// The codes that errors of the runtime and of the service end with.
ExitCode exit_code_of(service::Fault fault);
ExitCode exit_code_of(rt::ErrorKind kind);
[[noreturn]] void throw_error(const rt::Error& error, const std::string& context = "");

// The value, or the error thrown with `context` ("file g.npy") in front.
template <typename T>
T value_or_throw(rt::Result<T> result, const std::string& context = "") {
  if (!result) throw_error(result.error(), context);
  return std::move(*result);
}

}  // namespace cinch::driver
