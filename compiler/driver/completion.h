// Scripts that complete commands in a shell.
#pragma once
#include <string>

#include "compiler/driver/command_tree.h"

namespace cinch::driver {

// `shell`: "bash", "zsh" or "fish".
std::string completion_script(const CommandShape& root, const std::string& shell);

}  // namespace cinch::driver
