// One entry of the cache as the bytes of a file: 40 bytes of preamble, a JSON text (key, title and
// imports; of a packed image how many bytes it unpacks to), then the image file (image_file.h), as
// it is or packed by Zstandard, at the next multiple of 16. Little endian, versioned, checksummed.
//
//   0  8 bytes "CINCHKRN"    8  u32 format version   12  u32 bytes of JSON
//   16 u64 bytes of the file 24 XXH3 128 of all bytes from 40 on (low, high)
#pragma once

#include <span>
#include <utility>

#include "runtime/cache/image_cache.h"

namespace cinch::rt {
/// `key` is the entry's file name without its ending.
std::vector<std::uint8_t> write_entry(const std::string& key, const CacheEntry& entry,
                                      EntryForm form);
/// Errors: CorruptFile (not an entry, truncated, changed, or of another key), VersionMismatch.
/// Messages follow the path: "was changed".
Result<CacheEntry> read_entry(std::span<const std::uint8_t> bytes, const std::string& key);
Result<StoredEntry> read_stored_entry(std::span<const std::uint8_t> bytes, const std::string& key);

// Open files and folders, read and written whole, whatever their paths lead to by now.

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

// Folders and files that only this user and root can have written (root may do everything anyway).
// Only such files are read as code. Each is checked after it is opened, so that the checked file is
// the one that is read. Links in the last part of a path are not followed.

/// Opens a folder. Errors: Io, naming the path and why it is not trusted ("belongs to user 1000"),
/// or the system's reason, whose number is then the native code.
Result<OpenFile> open_trusted_folder(const std::filesystem::path& path);
/// Opens the folder or file with the name of the last part of `path`, within an open folder.
Result<OpenFile> open_trusted_folder_in(const OpenFile& folder, const std::filesystem::path& path);
Result<OpenFile> open_trusted_file_in(const OpenFile& folder, const std::filesystem::path& path);

/// Does the error mean that nothing exists at the path?
bool is_missing(const Error& error);

/// Makes the missing folders of the path, for this user alone. Errors: Io.
Status make_private_folders(const std::filesystem::path& path);
/// Makes a folder that others may read, as far as they may read `folder` and the umask permits.
Status make_folder_in(const OpenFile& folder, const std::filesystem::path& path);

}  // namespace cinch::rt
