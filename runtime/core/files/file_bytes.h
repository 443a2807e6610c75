// Reads and writes whole files as bytes. Reading takes no more than the file's format allows, since
// the file may be an endless device. Writing never leaves half a file visible.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {
/// The error of a system call on a file. `verb`: "read" or "write". Too many open files in the
/// process is not an error of the file (Unavailable).
tl::unexpected<Error> file_error(std::string_view verb, const std::string& name, int code);
std::string quoted_path(const std::string& path);

/// Larger texts (programs, JSON) are rejected.
inline constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20;

/// Limits of a read. A file that does not begin with `magic` is read only up to its first 64 KiB;
/// its parser rejects it. A file that names its own size, in the u64 at byte `size_at`, is read up
/// to that size and at most one byte more (from a pipe or device), so that its parser can reject a
/// longer one. More than `most_bytes` is an error.
struct ReadLimits {
  std::string_view magic;
  std::optional<std::size_t> size_at = std::nullopt;
  std::uint64_t most_bytes = std::numeric_limits<std::int64_t>::max();
};

/// A file that is read piece by piece. Errors of all calls: Io, naming the file and the system's
/// reason; Unavailable (the process may open no more files).
class FileReader {
 public:
  static Result<FileReader> open(const std::filesystem::path& path);
  /// Reads from an open `descriptor`, which stays the caller's; `name` is for messages.
  static Result<FileReader> open_descriptor(int descriptor, const std::string& name);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) = delete;
  ~FileReader();

  /// Reads until `bytes` has `size_bytes` or the file ends.
  Status read_up_to(std::uint64_t size_bytes, std::vector<std::uint8_t>& bytes);
  /// Reads the whole file, with a reader that has read nothing yet.
  Result<std::vector<std::uint8_t>> read_all(const ReadLimits& limits);
  /// The size of a regular file, else 0.
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
/// Reads a text of at most kMostTextBytes.
Result<std::string> read_text_file(const std::filesystem::path& path);
Result<std::string> read_text_input();

/// The preamble of a file's bytes: a struct that begins with `magic` and `version`, as all files of
/// ours do, and has the size of the whole in `size`. Checks these. Errors: CorruptFile,
/// VersionMismatch, both with `what` ("image file") before them.
template <typename Preamble>
Result<Preamble> read_preamble(std::span<const std::uint8_t> file, const char (&magic)[8],
                               std::uint32_t version, std::uint64_t Preamble::* size,
                               const std::string& what) {
  Preamble preamble;
  const auto corrupt = [&](const std::string& why) {
    return fail(ErrorKind::CorruptFile, what + ": " + why);
  };
  if (file.size() < sizeof preamble) return corrupt("shorter than its preamble");
  std::memcpy(&preamble, file.data(), sizeof preamble);
  if (std::memcmp(preamble.magic, magic, sizeof magic) != 0)
    return corrupt("no magic at its start");
  if (preamble.version != version) {
    return fail(ErrorKind::VersionMismatch,
                fmt::format("{}: format version {}, this program reads {}", what, preamble.version,
                            version));
  }
  if (preamble.*size != file.size()) {
    return corrupt(fmt::format("says {} bytes, has {}", preamble.*size, file.size()));
  }
  return preamble;
}

/// Called with the name of the temporary file next to the target, and with "" when that is gone.
using PartialFileWatch = std::function<void(const std::string&)>;

/// Writes a file. For a regular file, or a new one, a temporary file is written next to `path` and
/// renamed; the file keeps its mode and, if the system allows, its owner. For a link its target is
/// replaced. Devices, pipes and descriptors of this process (/dev/stdout) are written directly.
/// Errors: Io (also a folder, and a file that may not be written), Unavailable; `path` is then
/// unchanged.
Status write_file_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes,
                        const PartialFileWatch& watch = {});

/// Writes all bytes, in several calls if need be. Returns 0, or the errno of the call that failed.
int write_all(int descriptor, std::span<const std::uint8_t> bytes);

// Keeps the files that a stranger's text names within a folder.

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
