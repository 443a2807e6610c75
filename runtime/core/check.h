// Bugs of Cinch itself. InternalError is the only exception of our own. CINCH_CHECK and CINCH_BUG
// throw it for a broken invariant, CINCH_LIMITATION for a valid program that Cinch cannot treat
// yet. The driver and the session catch it; it never crosses the C API.
#pragma once

#include <exception>
#include <string>

namespace cinch {

enum class InternalErrorKind { Bug, Limitation };

class InternalError : public std::exception {
 public:
  /// `location` is "file:line" of the check.
  InternalError(InternalErrorKind kind, std::string message, std::string location);

  InternalErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& location() const { return location_; }
  /// The stage that ran and the program as text; code that catches and rethrows adds them.
  const std::string& stage() const { return stage_; }
  const std::string& program() const { return program_; }
  void attach(std::string stage, std::string program);

  /// "internal error (bug) in STAGE at file:line: message".
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  void make_what();

  InternalErrorKind kind_;
  std::string message_, location_, stage_, program_, what_;
};

/// Used by the macros; never returns.
[[noreturn]] void throw_internal_error(InternalErrorKind kind, const char* file, int line,
                                       const char* condition, std::string message);

}  // namespace cinch

/// CINCH_CHECK(condition, message): the message is a std::string expression, evaluated only on
/// failure.
#define CINCH_CHECK(condition, message)                                                     \
  (static_cast<bool>(condition)                                                             \
       ? static_cast<void>(0)                                                               \
       : ::cinch::throw_internal_error(::cinch::InternalErrorKind::Bug, __FILE__, __LINE__, \
                                       #condition, message))
#define CINCH_BUG(message) \
  ::cinch::throw_internal_error(::cinch::InternalErrorKind::Bug, __FILE__, __LINE__, "", message)
#define CINCH_LIMITATION(message)                                                               \
  ::cinch::throw_internal_error(::cinch::InternalErrorKind::Limitation, __FILE__, __LINE__, "", \
                                message)
