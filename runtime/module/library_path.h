// Where the libraries lie that are opened at run time.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cinch::rt {

/// The folder of the executable or shared library that holds this code, whatever it was started as
/// or opened by; links are followed. Empty where that cannot be told.
std::filesystem::path own_folder();

/// Paths to try in turn: what the environment variable names, and nothing else; without it the
/// folder that this code was loaded from, ../lib, ../../lib, ../lib/cinch and cinch, if the file is
/// there, then the loader's own search.
std::vector<std::string> library_paths(const char* file_name, const char* variable);

}  // namespace cinch::rt
