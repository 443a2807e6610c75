// cinch build without --emit: a library that links like any other.
#pragma once
#include "compiler/driver/options.h"
#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

ExitCode build_library(const BuildOptions& options);

}  // namespace cinch::driver
