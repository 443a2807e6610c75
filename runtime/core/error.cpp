// Names of the kinds of running errors.
#include "runtime/core/error.h"

namespace cinch::rt {

const char* error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
      return "invalid argument";
    case ErrorKind::OutOfRange:
      return "out of range";
    case ErrorKind::Overflow:
      return "overflow";
    case ErrorKind::CorruptPayload:
      return "corrupt payload";
    case ErrorKind::CorruptFile:
      return "corrupt file";
    case ErrorKind::VersionMismatch:
      return "version mismatch";
    case ErrorKind::CheckFailed:
      return "check failed";
    case ErrorKind::Io:
      return "input/output error";
    case ErrorKind::OutOfMemory:
      return "out of memory";
    case ErrorKind::Unavailable:
      return "unavailable";
    case ErrorKind::Cancelled:
      return "cancelled";
    case ErrorKind::TimedOut:
      return "timed out";
    case ErrorKind::Device:
      return "device error";
    case ErrorKind::Internal:
      return "internal error";
  }
  return "unknown error";
}

}  // namespace cinch::rt
