// What the system says of a file, as an Error. For what reads and writes files.
#pragma once
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/core/error.h"

namespace cinch::rt {

/// `verb`: "read" or "write". A process that may hold no more files is no fault of the file.
inline tl::unexpected<Error> file_error(std::string_view verb, const std::string& name, int code) {
  const bool is_shortage = code == EMFILE || code == ENFILE || code == ENOMEM;
  return fail(is_shortage ? ErrorKind::Unavailable : ErrorKind::Io,
              fmt::format("cannot {} {}: {}", verb, name, std::strerror(code)), code);
}

inline std::string quoted_path(const std::string& path) {
  return "'" + path + "'";
}

}  // namespace cinch::rt
