// Whole files as bytes. Reading asks a file for no more than its format allows, as it may be a
// device that never ends; writing lets nobody see half a file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// Texts (programs, JSON) are refused above this.
inline constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20;

/// A file that does not begin with `magic` is read no further than its first 64 KiB: whoever parses
/// it refuses it. So is what goes on behind the size that it names itself, in the u64 at byte
/// `size_at`: of a pipe or device at most one byte more is read. One of more than `most_bytes` is
/// an error.
struct ReadLimits {
  std::string_view magic;
  std::optional<std::size_t> size_at = std::nullopt;
  std::uint64_t most_bytes = std::numeric_limits<std::int64_t>::max();
};

/// A file that is read piece by piece. Errors of all calls: Io, naming the file and the system's
/// reason; Unavailable where the process may open no more files.
class FileReader {
 public:
  static Result<FileReader> open(const std::filesystem::path& path);
  static Result<FileReader> open_standard_input();
  /// What is open as `descriptor`, which stays the caller's; `name` is for messages.
  static Result<FileReader> open_descriptor(int descriptor, const std::string& name);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) = delete;
  ~FileReader();

  /// Reads on until `bytes` has `size_bytes` or the file ends.
  Status read_up_to(std::uint64_t size_bytes, std::vector<std::uint8_t>& bytes);
  /// All that there is, of a reader that has read nothing yet.
  Result<std::vector<std::uint8_t>> read_all(const ReadLimits& limits);
  /// Of a regular file, else 0.
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  FileReader(int descriptor, std::string name);

  int descriptor_;
  std::string name_;
  std::uint64_t size_bytes_ = 0;
};

/// The whole file.
Result<std::vector<std::uint8_t>> read_file_bytes(const std::filesystem::path& path,
                                                  const ReadLimits& limits = {});
/// Of at most kMostTextBytes.
Result<std::string> read_text_file(const std::filesystem::path& path);
Result<std::string> read_text_input();

/// Is told the name of the file that is written beside the target, and "" once that is gone.
using PartialFileWatch = std::function<void(const std::string&)>;

/// A regular file, or one that is not there yet, is written beside `path` and then takes its name;
/// it keeps its mode and, where the system allows that, its owner. Of a link the target is
/// replaced. Devices, pipes and descriptors of this process (/dev/stdout) are written to as they
/// are. Errors: Io (also a folder, and a file that may not be written to), Unavailable; what stood
/// at `path` is then untouched.
Status write_file_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes,
                        const PartialFileWatch& watch = {});

/// Writes on until the system has taken everything. Gives 0, or the errno of what failed.
int write_all(int descriptor, std::span<const std::uint8_t> bytes);

}  // namespace cinch::rt
