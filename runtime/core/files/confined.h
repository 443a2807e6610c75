// Keeps the files that a stranger's text names within a folder.
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

namespace cinch::rt {

/// Does `path` lie below `folder`, links and `..` resolved? Every path lies below an empty name.
inline bool lies_below(const std::filesystem::path& path, const std::string& folder) {
  if (folder.empty()) return true;
  std::error_code error;
  const auto root = std::filesystem::canonical(folder, error);
  if (error) return false;
  const auto file = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  return !error &&
         std::mismatch(root.begin(), root.end(), file.begin(), file.end()).first == root.end();
}

/// Why a file elsewhere is not read.
inline std::string confined_text(const std::string& folder) {
  return "only files below '" + folder + "' are read";
}

}  // namespace cinch::rt
