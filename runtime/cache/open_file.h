// Files and folders that are open: whole files as bytes, whatever their paths lead to by now.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// A file or folder as the system numbers it; closed with the object. Below 0: none.
class OpenFile {
 public:
  explicit OpenFile(int number) : number_(number) {}
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// Closes it now; false where that fails, with which writing may have failed.
  bool close();

 private:
  int number_;
};

/// All of an open file, from where it stands; `path` is for messages. Errors: Io, naming the path
/// and the system's reason.
Result<std::vector<std::uint8_t>> read_file_bytes(const OpenFile& file,
                                                  const std::filesystem::path& path);

/// Writes a temporary file in the folder, then renames it onto the last part of `path`. `mode`: as
/// of open. Errors: Io; the temporary file is then removed and what stood there is untouched.
Status write_file_bytes_in(const OpenFile& folder, const std::filesystem::path& path,
                           std::span<const std::uint8_t> bytes, unsigned mode);

}  // namespace cinch::rt
