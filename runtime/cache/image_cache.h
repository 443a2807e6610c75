// Compiled programs as files, one per key, shared by all processes of a user and, read only, by
// others. Safe with any number of writers, on network file systems too: entries are written beside
// their place and renamed onto it, nothing is ever locked, folders are never removed, and an entry
// that is cut, changed, of another version or just gone is a miss. Entries are code: one that
// somebody else could have written (trusted_files.h), or that holds another key's program, is a
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
  std::filesystem::path folder;               // written to; empty: nothing is kept
  std::vector<std::filesystem::path> shared;  // looked at next, never written to
  std::uint64_t max_bytes = std::uint64_t{256} << 20;
  bool improves = true;  // code that was compiled quickly, in the background
  std::string problem;   // what of the environment is not understood, and so not followed
};

/// From the environment: CINCH_CACHE=off (or 0) turns the cache off; CINCH_CACHE_DIR is its folder,
/// else $XDG_CACHE_HOME/cinch, else $HOME/.cache/cinch; CINCH_CACHE_SHARED lists read-only folders,
/// separated by colons; CINCH_CACHE_MAX_BYTES is the size that is kept; CINCH_BACKGROUND=off (or 0)
/// leaves code as it was compiled first.
CacheSettings cache_settings_from_environment();

/// A text that a program was made from beside its own file.
struct SourceStamp {
  std::string path;  // as the maker of the entry finds it again
  Hash128 text;
  friend bool operator==(const SourceStamp&, const SourceStamp&) = default;
};

struct CacheEntry {
  std::string title;  // for people: "dgc ratio=0.01 for x86-64-v3"
  std::vector<SourceStamp> imports;
  ProgramImage image;
};

// An entry with its image as the bytes of an image file, not looked at yet.
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

  /// Looks in the folder, then in the shared ones. Marks an entry of the folder as used. What is
  /// not there, not whole or not to be believed is passed over.
  std::optional<CacheEntry> find(const Hash128& key) const;
  /// The same for whom the bytes are enough: the first whole entry, whose image is not looked at.
  std::optional<StoredEntry> find_stored(const Hash128& key) const;
  /// Keeps the entry, then removes the ones that were not used longest while the folder holds more
  /// than max_bytes. A folder that is not there is made, for this user alone. Errors: Io (a folder
  /// that cannot be written, or that others can), Unavailable (the cache is off).
  Status put(const Hash128& key, const CacheEntry& entry) const;
  /// Packs the images of all entries of the folder, a fifth of their size then: for a layer that
  /// others read. Returns how many there are. Errors: as of put.
  Result<std::size_t> pack() const;

  /// The folder's entries, the one used last first.
  std::vector<ListedEntry> list() const;
  /// Folders, shared ones too, and entries that are not used although they are there, each with the
  /// reason. What was kept by another version is not among them.
  std::vector<std::string> problems() const;
  /// Can entries be kept? Errors: Io, naming what cannot be written to, or what others can write
  /// to.
  Status check_writable() const;
  /// Removes all entries, and what writers left that died an hour ago or earlier; returns how many
  /// entries went.
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
