// Builds the texts of InternalError. Assumes nothing: all other code may throw through here.
#include "runtime/core/check.h"

#include <utility>

namespace cinch {

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

// The last two folders and the name of a path: messages do not contain paths of the build machine.
static std::string short_location(const char* file, int line) {
  std::string path = file;
  std::size_t at = path.size();
  for (int slashes = 0; at > 0; --at) {
    if (path[at - 1] == '/' && ++slashes == 3) break;
  }
  return path.substr(at) + ":" + std::to_string(line);
}

void throw_internal_error(InternalErrorKind kind, const char* file, int line, const char* condition,
                          std::string message) {
  if (*condition != '\0') message = "check `" + std::string(condition) + "` failed: " + message;
  throw InternalError(kind, std::move(message), short_location(file, line));
}

}  // namespace cinch
