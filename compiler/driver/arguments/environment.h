// The environment variables that Cinch reads: the command, its libraries and the Python package.
#pragma once
#include <span>
#include <string_view>

namespace cinch::driver {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view meaning;  // one or two sentences
};

// All of them, by topic; tests/lit/driver/environment.test compares them with the sources. `UCX_*`
// stands for all settings of UCX.
std::span<const EnvironmentVariable> environment_variables();

}  // namespace cinch::driver
