// Finds libraries that are opened at run time.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cinch::rt {

/// The folder of the executable or shared library that contains this code, however it was started
/// or opened; links are followed. Empty if it is unknown.
std::filesystem::path own_folder();

/// Paths to try in turn: only what the environment variable names, if it is set. Otherwise this
/// code's own folder, ../lib, ../../lib, ../lib/cinch and cinch, if the file is there, then the
/// loader's own search.
std::vector<std::string> library_paths(const char* file_name, const char* variable);

}  // namespace cinch::rt
