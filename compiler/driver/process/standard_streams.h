// The three standard streams, which the shell may have closed or sent to a full disk.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace cinch::driver {

// Gives closed streams a descriptor that can neither be read nor written, so that no file that is
// opened later takes their place. Call it once, before anything is opened.
void hold_standard_streams();

// Flushes standard output. Returns why some of the command's output could not be written; empty if
// all of it was.
std::string flush_output();

// Prints to standard error and ignores failures there, since these messages are not the command's
// output.
template <typename... Args>
void print_aside(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
}

}  // namespace cinch::driver
