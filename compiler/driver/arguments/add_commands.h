// The parser's sub-commands. Each function adds one of them with its options.
#pragma once
#include "compiler/driver/arguments/shared_options.h"

namespace cinch::driver {

// program_commands.cpp: commands that work on a program.
void add_check(Registry& registry);
void add_format(Registry& registry);
void add_explain(Registry& registry);
void add_run(Registry& registry);
void add_encode(Registry& registry);
void add_decode(Registry& registry);
void add_build(Registry& registry);
void add_opt(Registry& registry);

// measuring_commands.cpp: commands that test programs and measure them.
void add_verify(Registry& registry);
void add_bench(Registry& registry);
void add_report(Registry& registry);
void add_tune(Registry& registry);

// machine_commands.cpp: commands about what is installed, and for shells and editors.
void add_list(Registry& registry);
void add_doctor(Registry& registry);
void add_cache(Registry& registry);
void add_lsp(Registry& registry);
void add_completion(Registry& registry);

// rank_commands.cpp: commands that work on several ranks.
void add_sync(Registry& registry);
void add_probe(Registry& registry);

// `cinch help [COMMAND…]` prints what `cinch COMMAND… --help` does. It also has pages about topics
// that all commands share.
void add_help(Registry& registry);
// `cinch man-pages DIR` writes the manual pages. The command is for builds and packages; --help
// hides it.
void add_man_pages(Registry& registry);

}  // namespace cinch::driver
