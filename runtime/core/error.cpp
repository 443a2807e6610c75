// Names of the kinds of running errors.

#include "runtime/core/error.h"
#include "runtime/core/check.h"
#include "runtime/core/ids.h"

namespace cinch::rt {
const char* error_kind_name(ErrorKind kind) {
  static constexpr const char* kNames[] = {
      "invalid argument", "out of range", "overflow",           "corrupt payload", "corrupt file",
      "version mismatch", "check failed", "input/output error", "out of memory",   "unavailable",
      "cancelled",        "timed out",    "device error",       "internal error"};
  return name_in(kNames, kind, "unknown error");
}

}  // namespace cinch::rt

namespace cinch {
// Builds the texts of InternalError. Assumes nothing: all other code may throw through here.

InternalError::InternalError(InternalErrorKind kind, std::string message, std::string location)
    : kind_(kind), message_(std::move(message)), location_(std::move(location)) {
  make_what();
}

void InternalError::attach(std::string stage, std::string program) {
  stage_ = std::move(stage);
  program_ = std::move(program);
  make_what();
}

void InternalError::make_what() {
  what_ = "internal error (";
  what_ += kind_ == InternalErrorKind::Bug ? "bug" : "limitation";
  what_ += ")";
  if (!stage_.empty()) what_ += " in " + stage_;
  what_ += " at " + location_ + ": " + message_;
}

void throw_internal_error(InternalErrorKind kind, const char* file, int line, const char* condition,
                          std::string message) {
  if (*condition != '\0') message = "check `" + std::string(condition) + "` failed: " + message;
  // The last two folders and the name of a path: messages do not contain paths of the build
  // machine.
  std::string path = file;
  std::size_t at = path.size();
  for (int slashes = 0; at > 0; --at) {
    if (path[at - 1] == '/' && ++slashes == 3) break;
  }
  throw InternalError(kind, std::move(message), path.substr(at) + ":" + std::to_string(line));
}

}  // namespace cinch
