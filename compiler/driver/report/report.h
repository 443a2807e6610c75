// The report of a fault of Cinch itself: a text file with what is needed to find it.
#pragma once
#include <string>
#include <vector>

#include "runtime/core/check.h"

namespace cinch::driver {

// Writes the report into the folder for temporary files; gives its path, or "" where that failed
// too.
std::string write_report(const InternalError& error, const std::vector<std::string>& command_line);

}  // namespace cinch::driver
