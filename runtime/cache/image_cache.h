// Compiled programs as files, one per key, shared by all processes of a user and, read only, by
// others. Safe with any number of writers, on network file systems too: entries are written to
// temporary files and renamed, nothing is ever locked, and folders are never removed. An entry that
// is truncated, changed, of another version or just gone is a miss. Entries are code: an entry that
// somebody else could have written (entry_file.h), or that holds another key's program, is a
// miss, too.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/hash.h"
#include "runtime/image/image.h"

namespace cinch::rt {

inline constexpr std::uint32_t kCacheFormatVersion = 3;

struct CacheSettings {
  bool is_on = true;
  std::filesystem::path folder;               // for writing; empty: nothing is kept
  std::vector<std::filesystem::path> shared;  // searched next, never written
  std::uint64_t max_bytes = std::uint64_t{256} << 20;
  bool improves = true;  // recompile quickly compiled code in the background
  std::string problem;   // a setting of the environment that is invalid and ignored
};

/// Settings from the environment. CINCH_CACHE=off (or 0) turns the cache off. CINCH_CACHE_DIR is
/// its folder, else $XDG_CACHE_HOME/cinch, else $HOME/.cache/cinch. CINCH_CACHE_SHARED lists
/// read-only folders, separated by colons. CINCH_CACHE_MAX_BYTES is its largest size.
/// CINCH_BACKGROUND=off (or 0) turns off recompiling in the background.
CacheSettings cache_settings_from_environment();

/// A text besides the program's own file from which it was made.
struct SourceStamp {
  std::string path;  // as the maker of the entry found it
  Hash128 text;
  friend bool operator==(const SourceStamp&, const SourceStamp&) = default;
};

struct CacheEntry {
  std::string title;  // for people: "dgc ratio=0.01 for x86-64-v3"
  std::vector<SourceStamp> imports;
  ProgramImage image;
};

// An entry whose image is still the bytes of an image file, not yet parsed.
struct StoredEntry {
  std::string title;
  std::vector<SourceStamp> imports;
  std::vector<std::uint8_t> image;
};

enum class EntryForm : std::uint8_t { Plain, Packed };

struct ListedEntry {
  std::filesystem::path path;
  std::string title;
  std::optional<Error> problem;  // why it is not used; it then has no title
  std::uint64_t size_bytes = 0;
  std::filesystem::file_time_type last_used;
};

class ImageCache {
 public:
  explicit ImageCache(CacheSettings settings) : settings_(std::move(settings)) {}

  const CacheSettings& settings() const { return settings_; }

  /// Looks in the folder, then in the shared ones. Marks an entry of the folder as used. Skips
  /// entries that are missing, damaged or not trusted.
  std::optional<CacheEntry> find(const Hash128& key) const;
  /// The same for callers to whom the bytes are enough: returns the first whole entry without
  /// parsing its image.
  std::optional<StoredEntry> find_stored(const Hash128& key) const;
  /// Keeps the entry. While the folder holds more than max_bytes, removes the entries that were not
  /// used for the longest time. Makes a missing folder, for this user alone. Errors: Io (a folder
  /// that cannot be written, or that others can write), Unavailable (the cache is off).
  Status put(const Hash128& key, const CacheEntry& entry) const;
  /// Packs the images of all entries of the folder to about a fifth of their size, for a layer that
  /// others read. Returns their number. Errors: as of put.
  Result<std::size_t> pack() const;

  /// The folder's entries, most recently used first.
  std::vector<ListedEntry> list() const;
  /// Folders, shared ones too, and entries that exist but are not used, each with the reason.
  /// Entries of other versions are not listed.
  std::vector<std::string> problems() const;
  /// Can entries be kept? Errors: Io, naming the folder that cannot be written, or that others can
  /// write.
  Status check_writable() const;
  /// Removes all entries, and temporary files of writers that died at least an hour ago. Returns
  /// the number of removed entries.
  std::size_t clear() const;

 private:
  template <typename Read>
  auto find_by(const Hash128& key, const Read& read) const;
  std::vector<std::filesystem::path> folders() const;
  Status write(const std::filesystem::path& path, const CacheEntry& entry, EntryForm form) const;
  void trim() const;

  CacheSettings settings_;
};

}  // namespace cinch::rt
