// The meanings of exit codes, and the codes of errors of runtime and service; see exit_code.h.
#include "compiler/driver/process/exit_code.h"

#include <iterator>

namespace cinch::driver {

namespace {

constexpr ExitCodeMeaning kExitCodes[] = {
    {ExitCode::Done, "done", "The command did what it was asked to do."},
    {ExitCode::AtFault, "input",
     "The program, a file or a payload is wrong, or a file or the output could not be written. The "
     "message says which."},
    {ExitCode::Usage, "usage", "The command line is wrong."},
    {ExitCode::Unavailable, "unavailable",
     "The machine or this version lacks something: a device, a library, memory, file "
     "descriptors, or another rank that did not come or answer in time."},
    {ExitCode::Internal, "internal",
     "Cinch itself is at fault. A report is left in the folder for temporary files."},
};

}  // namespace

std::span<const ExitCodeMeaning> exit_code_meanings() {
  return kExitCodes;
}

const ExitCodeMeaning& meaning_of(ExitCode code) {
  const auto index = static_cast<std::size_t>(code);
  return kExitCodes[index < std::size(kExitCodes) ? index : std::size(kExitCodes) - 1];
}

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
    case rt::ErrorKind::TimedOut:
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
