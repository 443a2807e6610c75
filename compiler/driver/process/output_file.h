// Files that a command reads and writes whole. All throw CommandError.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

inline constexpr std::string_view kStandardInput = "-";

std::string read_text_file(const std::string& path);
// The same; "-" is the standard input.
std::string read_text_or_input(const std::string& path);
// As rt::write_file_bytes: what stands there is replaced, or written to if it is no regular file.
// An interrupt leaves nothing of a file half written.
void write_file(const std::string& path, std::span<const std::uint8_t> bytes);
void write_file(const std::string& path, std::string_view text);

struct OutputOption {
  std::string name, path;  // of an option that was not given: no path
};
// Two options that name one file would lose what is written first: ExitCode::Usage. Devices and
// pipes take several outputs, one after the other.
void require_distinct_files(const std::vector<OutputOption>& outputs);

}  // namespace cinch::driver
