// Errors of the runtime as the service's; see service_error.h.
#include "compiler/service/service_error.h"

namespace cinch::service {

void throw_error(const rt::Error& error) {
  switch (error.kind) {
    case rt::ErrorKind::Unavailable:
    case rt::ErrorKind::OutOfMemory:
    case rt::ErrorKind::Device:
      throw ServiceError(Fault::Unavailable, error.message);
    case rt::ErrorKind::Internal:
      throw ServiceError(Fault::Internal, error.message);
    case rt::ErrorKind::Io:
      throw ServiceError(Fault::File, error.message);
    default:
      throw ServiceError(Fault::Request, error.message);
  }
}

}  // namespace cinch::service
