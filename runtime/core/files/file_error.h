// Makes an Error from a system error about a file.
#pragma once
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/core/error.h"

namespace cinch::rt {

/// `verb`: "read" or "write". Too many open files in the process is not an error of the file
/// (Unavailable).
inline tl::unexpected<Error> file_error(std::string_view verb, const std::string& name, int code) {
  const bool is_shortage = code == EMFILE || code == ENFILE || code == ENOMEM;
  return fail(is_shortage ? ErrorKind::Unavailable : ErrorKind::Io,
              fmt::format("cannot {} {}: {}", verb, name, std::strerror(code)), code);
}

inline std::string quoted_path(const std::string& path) {
  return "'" + path + "'";
}

}  // namespace cinch::rt
