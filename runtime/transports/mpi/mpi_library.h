// Opens the module that calls MPI.
#pragma once
#include "runtime/core/error.h"
#include "runtime/transports/mpi/mpi_abi.h"

namespace cinch::rt {

/// The table lives as long as the process. The module is the one that CINCH_MPI names, else the one
/// where this build's libraries lie. Errors, on every call: Unavailable (no such file, no MPI,
/// another version).
const Result<const cinch_mpi_calls*>& mpi_library();

}  // namespace cinch::rt
