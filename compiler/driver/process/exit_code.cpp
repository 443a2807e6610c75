// From errors of runtime and service to exit codes; see exit_code.h.
#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

ExitCode exit_code_of(service::Fault fault) {
  switch (fault) {
    case service::Fault::Unavailable:
      return ExitCode::Unavailable;
    case service::Fault::Internal:
      return ExitCode::Internal;
    case service::Fault::Argument:
      return ExitCode::Usage;
    default:
      return ExitCode::AtFault;
  }
}

ExitCode exit_code_of(rt::ErrorKind kind) {
  switch (kind) {
    case rt::ErrorKind::Unavailable:
    case rt::ErrorKind::OutOfMemory:
    case rt::ErrorKind::Device:
      return ExitCode::Unavailable;
    case rt::ErrorKind::Internal:
      return ExitCode::Internal;
    default:
      return ExitCode::AtFault;
  }
}

void throw_error(const rt::Error& error, const std::string& context) {
  const std::string place = context.empty() ? "" : context + ": ";
  throw CommandError(exit_code_of(error.kind), place + error.message, error.kind);
}

}  // namespace cinch::driver
