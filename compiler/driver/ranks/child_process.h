// Processes that the command starts: mpirun, or ranks.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace cinch::driver {

// Set in the environment of ranks that the command starts, so that no rank starts others whatever
// its launcher says.
inline constexpr const char* kLaunched = "CINCH_LAUNCHED";

// Did a cinch command start this process as a rank?
bool is_started_by_command();
// Did Open MPI's mpirun start it?
bool is_started_by_mpirun();
// Is this process the first of the ranks that a launcher started, or no rank at all?
bool is_first_rank();

// Starts a child; negative: it could not be started. The child has a process group of its own:
// Ctrl-C in a terminal reaches this process, which passes it on. The child ends when this process
// does, and has no standard input.
pid_t start_child(std::vector<std::string> command);

}  // namespace cinch::driver
