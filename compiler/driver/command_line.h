// Parses the command line and runs the sub-command.
#pragma once
#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

// Parses and runs. Prints help and usage errors itself (exit 2); passes on exceptions of the
// sub-command.
ExitCode run_command_line(int argc, char** argv);

}  // namespace cinch::driver
