// Open files and folders, read and written whole, whatever their paths lead to by now.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// The descriptor of a file or folder; closed with the object. Below 0: none.
class OpenFile {
 public:
  explicit OpenFile(int number) : number_(number) {}
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// Closes it now. Returns false if that fails: writing may then have failed.
  bool close();

 private:
  int number_;
};

/// Reads an open file from its present position to the end; `path` is for messages. Errors: Io,
/// naming the path and the system's reason.
Result<std::vector<std::uint8_t>> read_file_bytes(const OpenFile& file,
                                                  const std::filesystem::path& path);

/// Writes a temporary file in the folder, then renames it to the last part of `path`. `mode`: as
/// for open. Errors: Io; the temporary file is then removed and the old file is unchanged.
Status write_file_bytes_in(const OpenFile& folder, const std::filesystem::path& path,
                           std::span<const std::uint8_t> bytes, unsigned mode);

}  // namespace cinch::rt
