// cinch build without --emit: a library that links like any other.
#pragma once
#include "compiler/driver/exit_code.h"
#include "compiler/driver/options.h"

namespace cinch::driver {

ExitCode build_library(const BuildOptions& options);

}  // namespace cinch::driver
