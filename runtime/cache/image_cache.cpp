// Entries of the cache. A file: 40 bytes of preamble, a JSON text (key, title and imports), the
// image file (image_file.h) at the next multiple of 16. Little endian, versioned, checksummed.
//
//   0  8 bytes "CINCHKRN"    8  u32 format version   12  u32 bytes of JSON
//   16 u64 bytes of the file 24 XXH3 128 of all bytes from 40 on (low, high)
#include "runtime/cache/image_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/cache/trusted_files.h"
#include "runtime/core/file_error.h"
#include "runtime/image/image_file.h"
#include "runtime/image/json_tree.h"

namespace cinch::rt {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr char kMagic[8] = {'C', 'I', 'N', 'C', 'H', 'K', 'R', 'N'};
constexpr const char* kExtension = ".cinchcache";
constexpr const char* kPartialExtension = ".partial";
constexpr unsigned kEntryMode = 0644;
constexpr auto kAbandonedAfter = std::chrono::hours(1);

struct Preamble {
  char magic[8];
  std::uint32_t version, json_bytes;
  std::uint64_t file_bytes;
  std::uint64_t hash_low, hash_high;
};
static_assert(sizeof(Preamble) == 40);

std::size_t image_offset(std::size_t json_bytes) {
  return (sizeof(Preamble) + json_bytes + 15) / 16 * 16;
}

std::vector<std::uint8_t> write_entry(const std::string& key, const CacheEntry& entry) {
  json meta = {{"key", key}, {"title", entry.title}, {"imports", json::array()}};
  for (const SourceStamp& stamp : entry.imports) {
    meta["imports"].push_back({stamp.path, stamp.text.low, stamp.text.high});
  }
  const std::string text = meta.dump(-1, ' ', true, json::error_handler_t::replace);
  const std::vector<std::uint8_t> image = write_image(entry.image);
  std::vector<std::uint8_t> bytes(image_offset(text.size()), 0);
  std::memcpy(bytes.data() + sizeof(Preamble), text.data(), text.size());
  bytes.insert(bytes.end(), image.begin(), image.end());
  const Hash128 hash = hash128(bytes.data() + sizeof(Preamble), bytes.size() - sizeof(Preamble));
  Preamble preamble{{},
                    kCacheFormatVersion,
                    static_cast<std::uint32_t>(text.size()),
                    bytes.size(),
                    hash.low,
                    hash.high};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  std::memcpy(bytes.data(), &preamble, sizeof preamble);
  return bytes;
}

tl::unexpected<Error> corrupt(const char* what) {
  return fail(ErrorKind::CorruptFile, what);
}

// The JSON text of a whole and unchanged entry.
Result<std::string_view> checked_meta(std::span<const std::uint8_t> bytes) {
  Preamble preamble;
  if (bytes.size() < sizeof preamble) return corrupt("is cut short");
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0) return corrupt("is no entry");
  if (preamble.version != kCacheFormatVersion) {
    return fail(ErrorKind::VersionMismatch, "is of another version");
  }
  if (preamble.file_bytes != bytes.size() || image_offset(preamble.json_bytes) > bytes.size()) {
    return corrupt("is cut short");
  }
  const Hash128 hash = hash128(bytes.data() + sizeof preamble, bytes.size() - sizeof preamble);
  if (hash != Hash128{preamble.hash_low, preamble.hash_high}) return corrupt("was changed");
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + sizeof preamble,
                          preamble.json_bytes);
}

bool has_text(const json& meta, const char* member) {
  return meta.contains(member) && meta[member].is_string();
}

// Title and imports, without the image.
Result<CacheEntry> read_meta(std::string_view text, const std::string& key) {
  const auto malformed = [] { return corrupt("has no title, key or imports"); };
  JsonTree tree;
  if (!tree.parse(text)) return malformed();
  const json& meta = tree.root();
  if (!meta.is_object() || !has_text(meta, "title") || !has_text(meta, "key") ||
      !meta.contains("imports") || !meta["imports"].is_array()) {
    return malformed();
  }
  if (meta["key"].get<std::string>() != key) return corrupt("holds the program of another key");
  CacheEntry entry;
  entry.title = meta["title"].get<std::string>();
  for (const json& stamp : meta["imports"]) {
    const bool is_stamp = stamp.is_array() && stamp.size() == 3 && stamp[0].is_string() &&
                          stamp[1].is_number_unsigned() && stamp[2].is_number_unsigned();
    if (!is_stamp) return malformed();
    entry.imports.push_back({stamp[0].get<std::string>(),
                             {stamp[1].get<std::uint64_t>(), stamp[2].get<std::uint64_t>()}});
  }
  return entry;
}

Result<CacheEntry> read_entry(std::span<const std::uint8_t> bytes, const std::string& key) {
  const auto text = checked_meta(bytes);
  if (!text) return tl::unexpected<Error>(text.error());
  auto entry = read_meta(*text, key);
  if (!entry) return entry;
  auto image = read_image(bytes.subspan(image_offset(text->size())));
  if (!image) return tl::unexpected<Error>(std::move(image.error()));
  entry->image = std::move(*image);
  return entry;
}

// Opened by way of the folders, none of which somebody else may write.
Result<OpenFile> open_entry(const fs::path& folder, const fs::path& path) {
  const auto top = open_trusted_folder(folder);
  if (!top) return tl::unexpected<Error>(top.error());
  const auto inner = open_trusted_folder_in(*top, path.parent_path());
  if (!inner) return tl::unexpected<Error>(inner.error());
  return open_trusted_file_in(*inner, path);
}

// The entry that the file of an opened one holds, whose name is its key. Errors name the path.
Result<CacheEntry> read_opened(const OpenFile& file, const fs::path& path) {
  const auto bytes = read_file_bytes(file, path);
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  auto entry = read_entry(*bytes, path.stem().string());
  if (!entry) entry.error().message = path.string() + ": " + entry.error().message;
  return entry;
}

Result<CacheEntry> load_entry(const fs::path& folder, const fs::path& path) {
  const auto file = open_entry(folder, path);
  if (!file) return tl::unexpected<Error>(file.error());
  return read_opened(*file, path);
}

// With the file system's clock, which writes go by too: it may lie some milliseconds behind the
// processor's.
void mark_as_used(const OpenFile& file) {
  (void)::futimens(file.number(), nullptr);
}

// Two letters of the key are a folder, so that none grows long.
fs::path place_of(const fs::path& folder, const Hash128& key) {
  const std::string name = to_hex(key);
  return folder / name.substr(0, 2) / (name + kExtension);
}

// Calls visit for what a folder holds; what vanishes meanwhile is passed over.
template <typename Visit>
void for_each_in(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    visit(at->path());
  }
}

// Folders of entries; never a link, which may lead elsewhere.
template <typename Visit>
void for_each_inner_folder(const fs::path& folder, const Visit& visit) {
  for_each_in(folder, [&](const fs::path& path) {
    std::error_code gone;
    if (fs::is_directory(fs::symlink_status(path, gone))) visit(path);
  });
}

template <typename Visit>
void for_each_file(const fs::path& folder, const Visit& visit) {
  for_each_inner_folder(folder, [&](const fs::path& inner) { for_each_in(inner, visit); });
}

// Of a writer that died; a living one is done in seconds.
void remove_if_abandoned(const fs::path& path) {
  if (path.extension() != kPartialExtension) return;
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (!error && fs::file_time_type::clock::now() - written > kAbandonedAfter) {
    fs::remove(path, error);
  }
}

}  // namespace

std::vector<fs::path> ImageCache::folders() const {
  std::vector<fs::path> folders = settings_.shared;
  if (!settings_.folder.empty()) folders.insert(folders.begin(), settings_.folder);
  return folders;
}

std::optional<CacheEntry> ImageCache::find(const Hash128& key) const {
  if (!settings_.is_on) return std::nullopt;
  for (const fs::path& folder : folders()) {
    const fs::path path = place_of(folder, key);
    const auto file = open_entry(folder, path);
    if (!file) continue;
    auto entry = read_opened(*file, path);
    if (!entry) continue;
    if (folder == settings_.folder) mark_as_used(*file);
    return std::move(*entry);
  }
  return std::nullopt;
}

Status ImageCache::put(const Hash128& key, const CacheEntry& entry) const {
  if (!settings_.is_on || settings_.folder.empty()) {
    return fail(ErrorKind::Unavailable, "the cache of compiled programs is off");
  }
  if (Status status = make_private_folders(settings_.folder); !status) return status;
  const auto folder = open_trusted_folder(settings_.folder);
  if (!folder) return tl::unexpected<Error>(folder.error());
  const fs::path path = place_of(settings_.folder, key);
  if (Status status = make_folder_in(*folder, path.parent_path()); !status) return status;
  const auto inner = open_trusted_folder_in(*folder, path.parent_path());
  if (!inner) return tl::unexpected<Error>(inner.error());
  const std::vector<std::uint8_t> bytes = write_entry(to_hex(key), entry);
  if (Status status = write_file_bytes_in(*inner, path, bytes, kEntryMode); !status) return status;
  trim();
  return Ok{};
}

std::vector<ListedEntry> ImageCache::list() const {
  std::vector<ListedEntry> entries;
  for_each_file(settings_.folder, [&](const fs::path& path) {
    if (path.extension() != kExtension) return;
    std::error_code gone;
    ListedEntry listed{path, "", {}, fs::file_size(path, gone), {}};
    listed.last_used = fs::last_write_time(path, gone);
    if (gone) return;
    auto entry = load_entry(settings_.folder, path);
    if (!entry && is_missing(entry.error())) return;
    if (entry) {
      listed.title = std::move(entry->title);
    } else {
      listed.problem = std::move(entry.error());
    }
    entries.push_back(std::move(listed));
  });
  std::sort(entries.begin(), entries.end(), [](const ListedEntry& a, const ListedEntry& b) {
    return std::tie(b.last_used, a.path) < std::tie(a.last_used, b.path);
  });
  return entries;
}

std::vector<std::string> ImageCache::problems() const {
  std::vector<std::string> problems;
  // Whether it can be used.
  const auto note = [&](const auto& result) {
    if (result) return true;
    const Error& error = result.error();
    const bool is_usual = is_missing(error) || error.kind == ErrorKind::VersionMismatch;
    if (!is_usual) problems.push_back(error.message);
    return false;
  };
  for (const fs::path& folder : folders()) {
    const auto top = open_trusted_folder(folder);
    if (!note(top)) continue;
    for_each_in(folder, [&](const fs::path& inner) {
      std::error_code gone;
      if (fs::is_regular_file(fs::symlink_status(inner, gone))) return;
      if (!note(open_trusted_folder_in(*top, inner))) return;
      for_each_in(inner, [&](const fs::path& path) {
        if (path.extension() == kExtension) note(load_entry(folder, path));
      });
    });
  }
  std::sort(problems.begin(), problems.end());
  return problems;
}

Status ImageCache::check_writable() const {
  // Folders that are not there are made in the nearest one that is.
  fs::path existing = settings_.folder;
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (existing.empty()) existing = ".";
  if (!fs::is_directory(existing, error)) {
    return file_error("write", quoted_path(existing.string()), ENOTDIR);
  }
  if (::access(existing.c_str(), W_OK | X_OK) == 0) return Ok{};
  return file_error("write", quoted_path(existing.string()), errno);
}

std::size_t ImageCache::clear() const {
  std::size_t removed = 0;
  for_each_file(settings_.folder, [&](const fs::path& path) {
    std::error_code ignored;
    remove_if_abandoned(path);
    if (path.extension() == kExtension && fs::remove(path, ignored)) ++removed;
  });
  return removed;
}

void ImageCache::trim() const {
  struct File {
    fs::path path;
    std::uint64_t size_bytes;
    fs::file_time_type last_used;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  for_each_file(settings_.folder, [&](const fs::path& path) {
    remove_if_abandoned(path);
    if (path.extension() != kExtension) return;
    std::error_code gone;
    const File file{path, fs::file_size(path, gone), fs::last_write_time(path, gone)};
    if (gone) return;
    total += file.size_bytes;
    files.push_back(file);
  });
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.last_used < b.last_used; });
  for (const File& file : files) {
    if (total <= settings_.max_bytes) return;
    std::error_code ignored;
    fs::remove(file.path, ignored);
    total -= file.size_bytes;
  }
}

}  // namespace cinch::rt
