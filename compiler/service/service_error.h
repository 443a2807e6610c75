// Why the service cannot produce a program. Everything in the service throws this; its callers
// translate it (the command line to exit codes, the C API to statuses). Bugs of Cinch are
// InternalError.
#pragma once
#include <exception>
#include <string>
#include <utility>

#include "runtime/core/error.h"

namespace cinch::service {

enum class Fault {
  Program,      // errors in its text; diagnostics say where
  Request,      // an unknown name
  Argument,     // an invalid binding
  File,         // cannot be read
  Unavailable,  // not available on this machine or in this version
  Internal,
};

class ServiceError : public std::exception {
 public:
  // `message` is empty if diagnostics were shown already.
  ServiceError(Fault fault, std::string message) : fault_(fault), message_(std::move(message)) {}
  Fault fault() const { return fault_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Fault fault_;
  std::string message_;
};

[[noreturn]] void throw_error(const rt::Error& error);

template <typename T>
T value_or_throw(rt::Result<T> result) {
  if (!result) throw_error(result.error());
  return std::move(*result);
}

}  // namespace cinch::service
