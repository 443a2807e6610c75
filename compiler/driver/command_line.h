// From words to a sub-command's options, and the sub-command run.
#pragma once
#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

// Parses and runs. Prints help and usage errors itself (exit 2); throws what the sub-command
// throws.
ExitCode run_command_line(int argc, char** argv);

}  // namespace cinch::driver
