// The report of a bug of Cinch: a text file with what is needed to find it.
#pragma once
#include <string>
#include <vector>

#include "runtime/core/check.h"

namespace cinch::driver {

// Writes the report to the folder for temporary files. Returns its path, or "" if that failed, too.
std::string write_report(const InternalError& error, const std::vector<std::string>& command_line);

}  // namespace cinch::driver
