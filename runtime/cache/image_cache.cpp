// Folders of entries; the entries are entry_file.h's.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/cache/entry_file.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/log.h"
#include "runtime/core/numbers/parse_number.h"

namespace cinch::rt {
namespace fs = std::filesystem;

namespace {

constexpr const char* kExtension = ".cinchcache";
constexpr const char* kPartialExtension = ".partial";
constexpr unsigned kEntryMode = 0644;
constexpr auto kAbandonedAfter = std::chrono::hours(1);

// Opens an entry through its folders, none of which somebody else may write.
Result<OpenFile> open_entry(const fs::path& folder, const fs::path& path) {
  const auto top = TRY(open_trusted_folder(folder));
  const auto inner = TRY(open_trusted_folder_in(top, path.parent_path()));
  return open_trusted_file_in(inner, path);
}

// Applies `read` to the entry in an open file, whose name is its key. Errors name the path.
template <typename Read>
auto read_opened(const OpenFile& file, const fs::path& path, const Read& read)
    -> decltype(read({}, {})) {
  const auto bytes = TRY(read_file_bytes(file, path));
  auto entry = read(bytes, path.stem().string());
  if (!entry) entry.error().message = path.string() + ": " + entry.error().message;
  return entry;
}

Result<CacheEntry> load_entry(const fs::path& folder, const fs::path& path) {
  const auto file = TRY(open_entry(folder, path));
  return read_opened(file, path, read_entry);
}

// Two letters of the key name a folder, so that no folder gets long.
fs::path place_of(const fs::path& folder, const Hash128& key) {
  const std::string name = to_hex(key);
  return folder / name.substr(0, 2) / (name + kExtension);
}

// Calls visit for each entry of a folder; skips entries that vanish meanwhile.
template <typename Visit>
void for_each_in(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    visit(at->path());
  }
}

// Visits folders of entries; never a link, which may lead elsewhere.
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

// The file of a writer that died; a live writer finishes within seconds.
void remove_if_abandoned(const fs::path& path) {
  if (path.extension() != kPartialExtension) return;
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (!error && fs::file_time_type::clock::now() - written > kAbandonedAfter) {
    fs::remove(path, error);
  }
}

bool is_on(const char* name) {
  const auto word = environment_variable(name);
  return word != "off" && word != "0";
}

}  // namespace

std::vector<fs::path> ImageCache::folders() const {
  std::vector<fs::path> folders = settings_.shared;
  if (!settings_.folder.empty()) folders.insert(folders.begin(), settings_.folder);
  return folders;
}

template <typename Read>
auto ImageCache::find_by(const Hash128& key, const Read& read) const {
  std::optional<typename decltype(read({}, {}))::value_type> found;
  if (!settings_.is_on) return found;
  for (const fs::path& folder : folders()) {
    const fs::path path = place_of(folder, key);
    const auto file = open_entry(folder, path);
    if (!file) continue;
    auto entry = read_opened(*file, path, read);
    if (!entry) continue;
    // Uses the file system's clock, as writes do: it may be some milliseconds behind the
    // processor's.
    if (folder == settings_.folder) (void)::futimens(file->number(), nullptr);
    found = std::move(*entry);
    break;
  }
  return found;
}

std::optional<CacheEntry> ImageCache::find(const Hash128& key) const {
  return find_by(key, read_entry);
}

std::optional<StoredEntry> ImageCache::find_stored(const Hash128& key) const {
  return find_by(key, read_stored_entry);
}

Status ImageCache::put(const Hash128& key, const CacheEntry& entry) const {
  CINCH_TRY(write(place_of(settings_.folder, key), entry, EntryForm::Plain));
  trim();
  return Ok{};
}

Result<std::size_t> ImageCache::pack() const {
  std::size_t packed = 0;
  for (const ListedEntry& listed : list()) {
    const auto entry = load_entry(settings_.folder, listed.path);
    if (!entry) continue;
    CINCH_TRY(write(listed.path, *entry, EntryForm::Packed));
    ++packed;
  }
  return packed;
}

Status ImageCache::write(const fs::path& path, const CacheEntry& entry, EntryForm form) const {
  if (!settings_.is_on || settings_.folder.empty()) {
    return fail(ErrorKind::Unavailable, "the cache of compiled programs is off");
  }
  CINCH_TRY(make_private_folders(settings_.folder));
  const auto folder = TRY(open_trusted_folder(settings_.folder));
  CINCH_TRY(make_folder_in(folder, path.parent_path()));
  const auto inner = TRY(open_trusted_folder_in(folder, path.parent_path()));
  const std::vector<std::uint8_t> bytes = write_entry(path.stem().string(), entry, form);
  return write_file_bytes_in(inner, path, bytes, kEntryMode);
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
  // Returns whether it can be used, and notes an unexpected error.
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
  // Missing folders are made in the nearest existing one.
  fs::path existing = settings_.folder;
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (existing.empty()) existing = ".";
  if (!fs::is_directory(existing, error)) {
    return file_error("write", quoted_path(existing.string()), ENOTDIR);
  }
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    return file_error("write", quoted_path(existing.string()), errno);
  if (existing != settings_.folder) return Ok{};
  CINCH_TRY(open_trusted_folder(existing));
  return Ok{};
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

// Reads the cache's settings from the environment.

CacheSettings cache_settings_from_environment() {
  CacheSettings settings{.is_on = is_on("CINCH_CACHE"),
                         .folder = environment_variable("CINCH_CACHE_DIR"),
                         .improves = is_on("CINCH_BACKGROUND")};
  if (settings.folder.empty()) {
    const auto user = user_folder("XDG_CACHE_HOME", ".cache");
    if (!user.empty()) settings.folder = user / "cinch";
  }
  auto shared = environment_variable("CINCH_CACHE_SHARED");
  while (!shared.empty()) {
    const std::size_t colon = std::min(shared.find(':'), shared.size());
    if (colon > 0) settings.shared.emplace_back(shared.substr(0, colon));
    shared.remove_prefix(std::min(colon + 1, shared.size()));
  }
  const auto limit = environment_variable("CINCH_CACHE_MAX_BYTES");
  const ParsedCount bytes = parse_count(limit, "B");
  if (bytes.state == ParsedCount::State::Whole && !bytes.is_negative) {
    settings.max_bytes = bytes.magnitude;
  } else if (!limit.empty()) {
    settings.problem =
        fmt::format("CINCH_CACHE_MAX_BYTES is '{}', which is not a number of bytes", limit);
  }
  return settings;
}

}  // namespace cinch::rt
