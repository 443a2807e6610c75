// Makes manual pages in the format of man(7).
#pragma once
#include <string>
#include <vector>

#include "compiler/driver/arguments/shared_options.h"
#include "compiler/driver/command_tree.h"

namespace cinch::driver {

struct ManPage {
  std::string file_name;  // "cinch-run.1"
  std::string text;
};

// cinch.1, and a page for each command.
std::vector<ManPage> man_pages(const CommandShape& root);

// `cinch man-pages DIR` writes them. The command is for builds and packages; --help hides it.
void add_man_pages(Registry& registry);

}  // namespace cinch::driver
