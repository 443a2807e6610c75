// The three standard streams, which the shell may have closed or led to a full disk.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace cinch::driver {

// What is closed is given a descriptor that can neither be read nor written, so that no file that
// is opened later takes its place. Once, before anything is opened.
void hold_standard_streams();

// Writes out what is still buffered. Why not all of the command's output could be written; empty
// where all of it was.
std::string flush_output();

// To standard error, which may be as full: what is said there beside the output ends nothing.
template <typename... Args>
void print_aside(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
}

}  // namespace cinch::driver
