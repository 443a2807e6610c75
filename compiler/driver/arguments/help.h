// `cinch help`, and the layout of all help texts.
#pragma once
#include <memory>

#include "compiler/driver/arguments/shared_options.h"

namespace cinch::driver {

// Formats help texts to the width of the terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// `cinch help [COMMAND…]` prints what `cinch COMMAND… --help` does. It also has pages about topics
// that all commands share.
void add_help(Registry& registry);
std::vector<std::string> help_pages();

}  // namespace cinch::driver
