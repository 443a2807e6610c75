// Files that a command writes whole, and its standard input. Writing goes to a file beside the
// target, which then takes its name.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/service/whole_file.h"

namespace cinch::driver {

inline constexpr std::string_view kStandardInput = "-";

using service::read_binary_file;
using service::read_text_file;
// The same; "-" is the standard input.
std::string read_text_or_input(const std::string& path);
// The target is complete or as it was before. Throws CommandError (AtFault).
void write_file(const std::string& path, std::span<const std::uint8_t> bytes);
void write_file(const std::string& path, std::string_view text);

}  // namespace cinch::driver
