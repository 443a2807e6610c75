// Processes that the command starts: mpirun, or ranks.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace cinch::driver {

// In the environment of ranks that the command starts, so that no rank starts others whatever its
// launcher tells it.
inline constexpr const char* kLaunched = "CINCH_LAUNCHED";

// Did a cinch command start this process as a rank?
bool is_started_by_command();
// Is this process the first of the ranks that a launcher has started, or no rank at all?
bool is_first_rank();

// Negative: none can be made. The child has a process group of its own: Ctrl-C in a terminal is
// this process's, which hands it on. It ends when this process does, and has no standard input.
pid_t start_child(std::vector<std::string> command);

}  // namespace cinch::driver
