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
  std::string tried;
  for (const std::string& path : library_paths(CINCH_MPI_LIBRARY, "CINCH_MPI")) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    void* const entry = library == nullptr ? nullptr : ::dlsym(library, CINCH_MPI_ENTRY);
    const auto* const calls =
        entry == nullptr ? nullptr
                         : reinterpret_cast<cinch_mpi_calls_of_fn>(entry)(CINCH_MPI_ABI_VERSION);
    if (calls != nullptr) return calls;
    const char* const reason = ::dlerror();
    tried += (tried.empty() ? "" : "; ") +
             (reason == nullptr ? path + ": of another version" : std::string(reason));
  }
  return fail(ErrorKind::Unavailable, "no MPI: " + tried);
}

}  // namespace

const Result<const cinch_mpi_calls*>& mpi_library() {
  static const Result<const cinch_mpi_calls*> kCalls = open_mpi_module();
  return kCalls;
}

}  // namespace cinch::rt
