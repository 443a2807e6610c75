// Opening the module that calls MPI.
#pragma once
#include "runtime/core/error.h"
#include "runtime/transports/mpi/mpi_abi.h"

namespace cinch::rt {

/// The table lives as long as the process. The module: CINCH_MPI, else where libraries of this
/// build lie. Errors: Unavailable (no such file, no MPI, another version), on every call.
const Result<const cinch_mpi_calls*>& mpi_library();

}  // namespace cinch::rt
