// Lines for the log of the program that uses Cinch: what is no error, but what its user should
// know. Silent unless the program asks for them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::rt {
// Variables of the environment, and the user's folders that they name.

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

/// Takes lines in place of what took them before; null: nobody does. From any thread. A line that
/// another thread tells meanwhile may still come.
void set_log(std::function<void(const std::string& line)> takes_lines);
/// Tells a line on this thread. Whoever calls this holds no lock, since the program may call Cinch
/// again.
void tell_log(const std::string& line);

// Text from outside, such as names of files, for people.

/// `text` with control characters and marks of writing direction as "\x1b" or "\u202e", since a
/// terminal would obey them. So are bytes that belong to no character of UTF-8. Line ends and tabs
/// stay.
std::string visible_text(std::string_view text);

}  // namespace cinch::rt

namespace cinch {
// "Did you mean …?" for misspelt names in diagnostics, parameters, programs.

/// The candidate nearest to `word` (edit distance with swaps, at most a third of its length, at
/// least 1), or "" if none is near. Ties go to the earlier candidate.
std::string_view nearest_name(std::string_view word,
                              const std::vector<std::string_view>& candidates);

}  // namespace cinch
