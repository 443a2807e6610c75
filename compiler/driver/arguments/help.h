// `cinch help`, and how all help texts look.
#pragma once
#include <memory>

#include "compiler/driver/arguments/shared_options.h"

namespace cinch::driver {

// Help texts that fit the terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// `cinch help [COMMAND…]`: what `cinch COMMAND… --help` shows; and pages about what all commands
// share.
void add_help(Registry& registry);
std::vector<std::string> help_pages();

}  // namespace cinch::driver
