// Opens the module that calls MPI.
#include "runtime/transports/mpi/mpi_transport.h"

#include <dlfcn.h>

#include <string>

#include "runtime/module/shared_object.h"
#include "runtime/transports/mpi/mpi_abi.h"

namespace cinch::rt {
namespace {

// Opened globally: components that Open MPI loads take its symbols from the process.
Result<const cinch_mpi_calls*> open_mpi_module() {
  const auto opened = open_first_library(
      library_paths(CINCH_MPI_LIBRARY, "CINCH_MPI"), RTLD_NOW | RTLD_GLOBAL, CINCH_MPI_ENTRY, "MPI",
      [](void* entry) {
        return reinterpret_cast<cinch_mpi_calls_of_fn>(entry)(CINCH_MPI_ABI_VERSION);
      });
  CINCH_TRY(opened);
  return static_cast<const cinch_mpi_calls*>(opened->table);
}

}  // namespace

const Result<const cinch_mpi_calls*>& mpi_library() {
  static const Result<const cinch_mpi_calls*> kCalls = open_mpi_module();
  return kCalls;
}

}  // namespace cinch::rt
