// Why a program cannot be had: thrown by everything of the service, told by its callers (the
// command line as exit codes, the C API as statuses). Faults of Cinch itself are InternalError.
#pragma once
#include <exception>
#include <string>
#include <utility>

#include "runtime/core/error.h"

namespace cinch::service {

enum class Fault {
  Program,      // its text; diagnostics say where
  Request,      // what was asked for is not there: a name
  Argument,     // a binding that is none
  File,         // cannot be read
  Unavailable,  // this machine or this version lacks what was asked for
  Internal,
};

class ServiceError : public std::exception {
 public:
  // `message` is empty where diagnostics were shown already.
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
