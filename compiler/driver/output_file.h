// Files that a command reads and writes whole. Writing goes to a file beside the target, which then
// takes its name.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

inline constexpr std::string_view kStandardInput = "-";

// Throws CommandError (AtFault) naming the file and the system's reason.
std::string read_text_file(const std::string& path);
std::vector<std::uint8_t> read_binary_file(const std::string& path);
// The same; "-" is the standard input.
std::string read_text_or_input(const std::string& path);
// The target is complete or as it was before. Throws CommandError (AtFault).
void write_file(const std::string& path, std::span<const std::uint8_t> bytes);
void write_file(const std::string& path, std::string_view text);

}  // namespace cinch::driver
