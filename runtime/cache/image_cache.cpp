// Entries of the cache. A file: 40 bytes of preamble, a JSON text (title and imports), the image
// file (image_file.h) at the next multiple of 16. Little endian, versioned, checksummed.
//
//   0  8 bytes "CINCHKRN"    8  u32 format version   12  u32 bytes of JSON
//   16 u64 bytes of the file 24 XXH3 128 of all bytes from 40 on (low, high)
#include "runtime/cache/image_cache.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/core/file_bytes.h"
#include "runtime/image/image_file.h"
#include "runtime/image/json_tree.h"

namespace cinch::rt {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr char kMagic[8] = {'C', 'I', 'N', 'C', 'H', 'K', 'R', 'N'};
constexpr const char* kExtension = ".cinchcache";
constexpr const char* kPartialExtension = ".partial";
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

std::vector<std::uint8_t> write_entry(const CacheEntry& entry) {
  json meta = {{"title", entry.title}, {"imports", json::array()}};
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

// The JSON text of a whole and unchanged entry.
std::optional<std::string_view> checked_meta(std::span<const std::uint8_t> bytes) {
  Preamble preamble;
  if (bytes.size() < sizeof preamble) return std::nullopt;
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  const bool fits = std::memcmp(preamble.magic, kMagic, sizeof kMagic) == 0 &&
                    preamble.version == kCacheFormatVersion &&
                    preamble.file_bytes == bytes.size() &&
                    image_offset(preamble.json_bytes) <= bytes.size();
  if (!fits) return std::nullopt;
  const Hash128 hash = hash128(bytes.data() + sizeof preamble, bytes.size() - sizeof preamble);
  if (hash != Hash128{preamble.hash_low, preamble.hash_high}) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + sizeof preamble,
                          preamble.json_bytes);
}

// Title and imports, without the image.
std::optional<CacheEntry> read_meta(std::string_view text) {
  JsonTree tree;
  if (!tree.parse(text)) return std::nullopt;
  const json& meta = tree.root();
  if (!meta.is_object() || !meta.contains("title") || !meta["title"].is_string() ||
      !meta.contains("imports") || !meta["imports"].is_array()) {
    return std::nullopt;
  }
  CacheEntry entry;
  entry.title = meta["title"].get<std::string>();
  for (const json& stamp : meta["imports"]) {
    const bool is_stamp = stamp.is_array() && stamp.size() == 3 && stamp[0].is_string() &&
                          stamp[1].is_number_unsigned() && stamp[2].is_number_unsigned();
    if (!is_stamp) return std::nullopt;
    entry.imports.push_back({stamp[0].get<std::string>(),
                             {stamp[1].get<std::uint64_t>(), stamp[2].get<std::uint64_t>()}});
  }
  return entry;
}

std::optional<CacheEntry> read_entry(std::span<const std::uint8_t> bytes) {
  const auto text = checked_meta(bytes);
  if (!text) return std::nullopt;
  auto entry = read_meta(*text);
  if (!entry) return std::nullopt;
  auto image = read_image(bytes.subspan(image_offset(text->size())));
  if (!image) return std::nullopt;
  entry->image = std::move(*image);
  return entry;
}

Result<std::vector<std::uint8_t>> read_entry_bytes(const fs::path& path) {
  return read_file_bytes(path, {.magic = {kMagic, sizeof kMagic}});
}

// Two letters of the key are a folder, so that none grows long.
fs::path place_of(const fs::path& folder, const Hash128& key) {
  const std::string name = to_hex(key);
  return folder / name.substr(0, 2) / (name + kExtension);
}

// Calls visit for every file two levels down; what vanishes meanwhile is passed over.
template <typename Visit>
void for_each_file(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  for (fs::directory_iterator top(folder, error), end; !error && top != end; top.increment(error)) {
    std::error_code inner;
    for (fs::directory_iterator file(top->path(), inner); !inner && file != end;
         file.increment(inner)) {
      visit(file->path());
    }
  }
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

std::optional<CacheEntry> ImageCache::find(const Hash128& key) const {
  if (!settings_.is_on) return std::nullopt;
  std::vector<fs::path> folders = settings_.shared;
  if (!settings_.folder.empty()) folders.insert(folders.begin(), settings_.folder);
  for (const fs::path& folder : folders) {
    const fs::path path = place_of(folder, key);
    const auto bytes = read_entry_bytes(path);
    if (!bytes) continue;
    auto entry = read_entry(*bytes);
    if (!entry) continue;
    std::error_code ignored;
    if (folder == settings_.folder) {
      fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    }
    return entry;
  }
  return std::nullopt;
}

Status ImageCache::put(const Hash128& key, const CacheEntry& entry) const {
  if (!settings_.is_on || settings_.folder.empty()) {
    return fail(ErrorKind::Unavailable, "the cache of compiled programs is off");
  }
  const fs::path path = place_of(settings_.folder, key);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return fail(ErrorKind::Io,
                "cannot make " + path.parent_path().string() + ": " + error.message());
  }
  if (Status status = write_file_bytes(path, write_entry(entry)); !status) return status;
  trim();
  return Ok{};
}

std::vector<ListedEntry> ImageCache::list() const {
  std::vector<ListedEntry> entries;
  for_each_file(settings_.folder, [&](const fs::path& path) {
    if (path.extension() != kExtension) return;
    std::error_code gone;
    ListedEntry listed{path, "", fs::file_size(path, gone), {}};
    listed.last_used = fs::last_write_time(path, gone);
    if (gone) return;
    const auto bytes = read_entry_bytes(path);
    if (!bytes) return;
    if (const auto entry = read_entry(*bytes)) listed.title = entry->title;
    entries.push_back(std::move(listed));
  });
  std::sort(entries.begin(), entries.end(), [](const ListedEntry& a, const ListedEntry& b) {
    return std::tie(b.last_used, a.path) < std::tie(a.last_used, b.path);
  });
  return entries;
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
