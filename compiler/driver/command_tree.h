// The commands of `cinch` as plain data, read off the parser itself: what completion offers and
// what the manual says is what the parser takes.
#pragma once
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace cinch::driver {

struct OptionShape {
  std::vector<std::string> names;  // "-h", "--help"; none: positional
  std::string description;
  std::string value_name;          // "PROGRAM", "FILE"; empty for a flag
  std::vector<std::string> words;  // values that are known
  std::string default_value;       // as it is written; empty: none
  bool is_required = false;
  bool takes_files = false;
  bool is_repeatable = false;
  bool takes_several = false;  // values, one after the other
};

struct CommandShape {
  std::string name, description;
  std::string footer;  // "Example: cinch list topk"
  std::vector<OptionShape> options;
  std::vector<CommandShape> commands;
};

// Commands and options that --help does not show are left out.
CommandShape shape_of(const CLI::App& app);

// Names of the parameters of a compressor of the standard library, or of all of them where there is
// no such compressor with parameters. None where the library cannot be read.
std::vector<std::string> library_parameters(const std::string& compressor);

}  // namespace cinch::driver
