// Ranks of mpirun: those that it has started, and those that the command has it start.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

// Has mpirun, or another launcher, started this process as a rank?
bool is_launched_rank();

// Has mpirun run the command of these words with so many ranks, and ends as it does. A signal asks
// the ranks to stop; a second one ends them. Throws CommandError (Unavailable) where there is no
// MPI or no mpirun.
ExitCode launch_mpi_ranks(const std::vector<std::string>& words, std::uint32_t world);

}  // namespace cinch::driver
