// Variables of the environment, and the user's folders that they name.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace cinch::rt {

/// The value of a variable; empty if it is not set, or if the process has more rights than its user
/// (a set-user-ID program): variables name code that we load. Valid until the environment changes.
inline std::string_view environment_variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// The folder that an XDG variable names, else `below_home` in the user's home; empty if neither is
/// known. A relative path in the variable is ignored, as the XDG Base Directory Specification
/// demands: it would name another folder for each working directory.
inline std::filesystem::path user_folder(const char* xdg_variable, const char* below_home) {
  std::filesystem::path named(environment_variable(xdg_variable));
  if (named.is_absolute()) return named;
  const std::string_view home = environment_variable("HOME");
  return home.empty() ? std::filesystem::path() : std::filesystem::path(home) / below_home;
}

}  // namespace cinch::rt
