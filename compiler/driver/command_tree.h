// The commands of `cinch` as plain data, read from the parser itself, so that completion and manual
// always match it.
#pragma once

#include "compiler/driver/process/files.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace cinch::driver {

struct OptionShape {
  std::vector<std::string> names;  // "-h", "--help"; none: positional
  std::string description;
  std::string value_name;          // "PROGRAM", "FILE"; empty for a flag
  std::vector<std::string> words;  // known values
  std::string default_value;       // as the user would type it; empty: none
  bool is_required = false;
  bool takes_files = false;
  bool is_repeatable = false;
  bool takes_several = false;  // one after the other
};

struct CommandShape {
  std::string name, description;
  std::string footer;  // "Example: cinch list topk"
  std::vector<OptionShape> options;
  std::vector<CommandShape> commands;
};

// Leaves out commands and options that --help does not show.
CommandShape shape_of(const CLI::App& app);

// Parameter names of a compressor of the standard library, or of all compressors if it has none or
// does not exist. Empty if the library cannot be read.
std::vector<std::string> library_parameters(const std::string& compressor);

// The script that completes commands in a shell: "bash", "zsh" or "fish".
std::string completion_script(const CommandShape& root, const std::string& shell);

}  // namespace cinch::driver

namespace cinch::driver {
// Parses the command line and runs the sub-command.

// Parses and runs. Prints help and usage errors itself (exit 2); passes on exceptions of the
// sub-command.
ExitCode run_command_line(int argc, char** argv);

}  // namespace cinch::driver
