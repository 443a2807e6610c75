// Ranks that mpirun started, and ranks that the command makes it start.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

// Has mpirun, or another launcher, started this process as a rank?
bool is_launched_rank();

// Makes mpirun run the command with these words on `world` ranks, and returns its exit code. A
// signal asks the ranks to stop; a second one ends them. Throws CommandError (Unavailable) if there
// is no MPI or no mpirun.
ExitCode launch_mpi_ranks(const std::vector<std::string>& words, std::uint32_t world);

}  // namespace cinch::driver
