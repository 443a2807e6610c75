// Files of commands. All functions throw CommandError.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {

inline constexpr std::string_view kStandardInput = "-";

std::string read_text_file(const std::string& path);
// The same; "-" is standard input.
std::string read_text_or_input(const std::string& path);
// As rt::write_file_bytes: replaces the file, or writes to it if it is not a regular file. An
// interrupt leaves no half-written file.
void write_file(const std::string& path, std::span<const std::uint8_t> bytes);
void write_file(const std::string& path, std::string_view text);

// Throws as write_file would if no file can be written at `path`: call it before long work whose
// result goes there. An empty path is an option that was not given.
void require_place_for(const std::string& path);

struct OutputOption {
  std::string name, path;  // an option that was not given has no path
};
// Throws (ExitCode::Usage) if two options name one file, since the first output would be lost.
// Devices and pipes may take several outputs, one after the other.
void require_distinct_files(const std::vector<OutputOption>& outputs);

/// A private folder of this process, removed with its contents when the object is destroyed.
class TemporaryFolder {
 public:
  // Throws CommandError (Unavailable) if it cannot be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace cinch::driver
