// How a command ends. Any part of the driver throws a CommandError if it cannot go on because of
// the user, the data or the machine; main prints it and exits with its code. Bugs of Cinch are
// InternalError.
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
  AtFault = 1,      // an error in the program, data or payload; a diagnostic says where
  Usage = 2,        // an error in the command line
  Unavailable = 3,  // not available on this machine, in this version, or in time
  Internal = 4,     // a bug of Cinch
};

// The meaning of a code, for people and scripts: `cinch help exit-codes`, and the `kind` of an
// error as JSON.
struct ExitCodeMeaning {
  ExitCode code;
  std::string_view kind, text;
};
std::span<const ExitCodeMeaning> exit_code_meanings();
const ExitCodeMeaning& meaning_of(ExitCode code);

class CommandError : public std::exception {
 public:
  // `message` without "error: "; empty if diagnostics were printed already.
  CommandError(ExitCode code, std::string message, std::optional<rt::ErrorKind> kind = std::nullopt)
      : code_(code), message_(std::move(message)), kind_(kind) {}
  ExitCode code() const { return code_; }
  // For an error of the runtime.
  std::optional<rt::ErrorKind> kind() const { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ExitCode code_;
  std::string message_;
  std::optional<rt::ErrorKind> kind_;
};

// The exit code for an error of the runtime or of the service.
ExitCode exit_code_of(service::Fault fault);
ExitCode exit_code_of(rt::ErrorKind kind);
[[noreturn]] void throw_error(const rt::Error& error, const std::string& context = "");

// Returns the value, or throws the error with `context` ("file g.npy") before it.
template <typename T>
T value_or_throw(rt::Result<T> result, const std::string& context = "") {
  if (!result) throw_error(result.error(), context);
  return std::move(*result);
}

}  // namespace cinch::driver
