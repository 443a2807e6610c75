// Processes that the command starts: mpirun, or ranks.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace cinch::driver {

// In the environment of ranks that the command starts, so that no rank starts others whatever its
// launcher tells it.
inline constexpr const char* kLaunched = "CINCH_LAUNCHED";

// Negative: none can be made. The child has a process group of its own: Ctrl-C in a terminal is
// this process's, which hands it on. It ends when this process does, and has no standard input.
pid_t start_child(std::vector<std::string> command);

}  // namespace cinch::driver
