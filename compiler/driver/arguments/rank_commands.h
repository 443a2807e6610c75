// The options of the commands that work on several ranks: `cinch sync` and `cinch probe`.
#pragma once
#include "compiler/driver/arguments/shared_options.h"

namespace cinch::driver {

void add_sync(Registry& registry);
void add_probe(Registry& registry);

}  // namespace cinch::driver
