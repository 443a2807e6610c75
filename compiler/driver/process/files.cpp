#include "compiler/driver/process/files.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/process/interrupt.h"
#include "runtime/core/files/file_bytes.h"

namespace cinch::driver {

std::string read_text_file(const std::string& path) {
  return value_or_throw(rt::read_text_file(path));
}

std::string read_text_or_input(const std::string& path) {
  return path == kStandardInput ? value_or_throw(rt::read_text_input()) : read_text_file(path);
}

void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  value_or_throw(rt::write_file_bytes(path, bytes, set_unfinished_file));
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

namespace {

// Where a path leads, even through a link to a file that does not exist yet.
std::filesystem::path place_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(path, error);
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(place, error); ++i) {
    place = place.parent_path() / std::filesystem::read_symlink(place, error);
  }
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(place, error);
  return error ? place : canonical;
}

}  // namespace

void require_place_for(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;  // whoever writes the file reports what is not seen here
  const bool is_folder = std::filesystem::is_directory(path, error);
  // Devices and pipes may lie in folders that cannot be written to.
  if (!is_folder && std::filesystem::exists(path, error)) return;
  const std::filesystem::path folder = place_of(path).parent_path();
  if (!is_folder && access(folder.c_str(), W_OK | X_OK) == 0) return;
  const int problem = is_folder ? EISDIR : errno;
  throw CommandError(ExitCode::AtFault,
                     fmt::format("cannot write '{}': {}", path, std::strerror(problem)));
}

void require_distinct_files(const std::vector<OutputOption>& outputs) {
  std::map<std::filesystem::path, std::string> seen;
  for (const OutputOption& output : outputs) {
    std::error_code error;
    const auto kind = std::filesystem::status(output.path, error).type();
    const bool is_file = kind == std::filesystem::file_type::regular ||
                         kind == std::filesystem::file_type::not_found;
    if (output.path.empty() || !is_file) continue;
    const auto [at, is_new] = seen.try_emplace(place_of(output.path), output.name);
    if (is_new) continue;
    throw CommandError(ExitCode::Usage, fmt::format("{} and {} name one file, {}", at->second,
                                                    output.name, output.path));
  }
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::error_code not_there;
  const auto parent = std::filesystem::temp_directory_path(not_there);
  std::string pattern = (parent / (name + "-XXXXXX")).string();
  if (not_there || !mkdtemp(pattern.data())) {
    throw CommandError(ExitCode::Unavailable, "no temporary folder can be made in " +
                                                  parent.string() + ": " + std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cinch::driver
