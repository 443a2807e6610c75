// Whole files through descriptors; see entry_file.h. Temporary names are random, so that two
// writers, in one process or on two machines with one disk, do not share one.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <random>

#include "runtime/cache/entry_file.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/json.h"
#include "runtime/image/image_file.h"

namespace cinch::rt {
using nlohmann::json;

namespace {

constexpr char kMagic[8] = {'C', 'I', 'N', 'C', 'H', 'K', 'R', 'N'};
// About 1 MB/s; the speed of unpacking does not depend on the level
constexpr int kPackingLevel = 19;
constexpr std::uint64_t kMostUnpackedBytes = std::uint64_t{1} << 30;
constexpr const char* kUnpackedBytes = "unpacked_bytes";

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

std::vector<std::uint8_t> pack(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> packed(ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), kPackingLevel);
  if (ZSTD_isError(size) != 0) return {};
  packed.resize(size);
  return packed;
}

// Joins the preamble, `text` and the image's bytes to the contents of a file.
std::vector<std::uint8_t> join(const std::string& text, std::span<const std::uint8_t> image) {
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

// The JSON text of an entry that is whole and unchanged.
Result<std::string_view> checked_meta(std::span<const std::uint8_t> bytes) {
  Preamble preamble;
  if (bytes.size() < sizeof preamble) return corrupt("is cut short");
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0) return corrupt("is not an entry");
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

// The facts about an entry without its image.
struct Meta {
  StoredEntry entry;
  std::optional<std::uint64_t> unpacked_bytes;  // of a packed image
};

Result<Meta> read_meta(std::string_view text, const std::string& key) {
  const auto malformed = [] { return corrupt("has no title, key or imports"); };
  JsonTree tree;
  if (!tree.parse(text)) return malformed();
  const json& meta = tree.root();
  if (!meta.is_object() || !has_text(meta, "title") || !has_text(meta, "key") ||
      !meta.contains("imports") || !meta["imports"].is_array()) {
    return malformed();
  }
  if (meta["key"].get<std::string>() != key) return corrupt("holds the program of another key");
  Meta found;
  StoredEntry& entry = found.entry;
  entry.title = meta["title"].get<std::string>();
  for (const json& stamp : meta["imports"]) {
    const bool is_stamp = stamp.is_array() && stamp.size() == 3 && stamp[0].is_string() &&
                          stamp[1].is_number_unsigned() && stamp[2].is_number_unsigned();
    if (!is_stamp) return malformed();
    entry.imports.push_back({stamp[0].get<std::string>(),
                             {stamp[1].get<std::uint64_t>(), stamp[2].get<std::uint64_t>()}});
  }
  if (meta.contains(kUnpackedBytes)) {
    if (!meta[kUnpackedBytes].is_number_unsigned()) return malformed();
    found.unpacked_bytes = meta[kUnpackedBytes].get<std::uint64_t>();
  }
  return found;
}

}  // namespace

std::vector<std::uint8_t> write_entry(const std::string& key, const CacheEntry& entry,
                                      EntryForm form) {
  json meta = {{"key", key}, {"title", entry.title}, {"imports", json::array()}};
  for (const SourceStamp& stamp : entry.imports) {
    meta["imports"].push_back({stamp.path, stamp.text.low, stamp.text.high});
  }
  std::vector<std::uint8_t> image = write_image(entry.image);
  if (form == EntryForm::Packed) {
    if (auto packed = pack(image); !packed.empty()) {
      meta[kUnpackedBytes] = image.size();
      image = std::move(packed);
    }
  }
  return join(meta.dump(-1, ' ', true, json::error_handler_t::replace), image);
}

Result<StoredEntry> read_stored_entry(std::span<const std::uint8_t> bytes, const std::string& key) {
  const auto text = TRY(checked_meta(bytes));
  auto meta = TRY(read_meta(text, key));
  const auto stored = bytes.subspan(image_offset(text.size()));
  if (const std::optional<std::uint64_t> num_bytes = meta.unpacked_bytes) {
    if (*num_bytes > kMostUnpackedBytes) return corrupt("unpacks to too much");
    std::vector<std::uint8_t>& image = meta.entry.image;
    image.resize(*num_bytes);
    const std::size_t size =
        ZSTD_decompress(image.data(), image.size(), stored.data(), stored.size());
    if (ZSTD_isError(size) != 0 || size != image.size()) return corrupt("cannot be unpacked");
  } else {
    meta.entry.image.assign(stored.begin(), stored.end());
  }
  return std::move(meta.entry);
}

Result<CacheEntry> read_entry(std::span<const std::uint8_t> bytes, const std::string& key) {
  auto stored = TRY(read_stored_entry(bytes, key));
  auto image = TRY(read_image(stored.image));
  return CacheEntry{std::move(stored.title), std::move(stored.imports), std::move(image)};
}

OpenFile::~OpenFile() {
  if (is_open()) (void)close();
}

bool OpenFile::close() {
  return ::close(std::exchange(number_, -1)) == 0;
}

Result<std::vector<std::uint8_t>> read_file_bytes(const OpenFile& file,
                                                  const std::filesystem::path& path) {
  auto reader = TRY(FileReader::open_descriptor(file.number(), quoted_path(path.string())));
  return reader.read_all({});
}

Status write_file_bytes_in(const OpenFile& folder, const std::filesystem::path& path,
                           std::span<const std::uint8_t> bytes, unsigned mode) {
  const std::string name = path.filename().string(), shown = quoted_path(path.string());
  std::random_device random;
  const std::string temporary = fmt::format("{}.{:08x}{:08x}.partial", name, random(), random());
  const int within = folder.number();
  OpenFile file(::openat(within, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open()) return file_error("write", shown, errno);
  const auto code_of = [](bool is_done) { return is_done ? 0 : errno; };
  int code = write_all(file.number(), bytes);
  if (code == 0) code = code_of(::fsync(file.number()) == 0);
  const int closing = code_of(file.close());
  if (code == 0) code = closing;
  if (code == 0) code = code_of(::renameat(within, temporary.c_str(), within, name.c_str()) == 0);
  if (code == 0) return Ok{};
  ::unlinkat(within, temporary.c_str(), 0);
  return file_error("write", shown, code);
}

// Which files are trusted.

namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivateFolder = 0700, kReadableFolder = 0755;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

enum class Wanted { File, Folder };

tl::unexpected<Error> refused(const fs::path& path, const std::string& why, int code = 0) {
  return fail(ErrorKind::Io, path.string() + " " + why, code);
}

tl::unexpected<Error> system_error(const fs::path& path, const char* verb, int code) {
  return refused(path, fmt::format("cannot be {}: {}", verb, std::strerror(code)), code);
}

// Why the file is not trusted; empty if it is.
std::string find_doubt(const struct stat& found, Wanted wanted) {
  if (S_ISLNK(found.st_mode)) return "is a link";
  if (wanted == Wanted::Folder && !S_ISDIR(found.st_mode)) return "is not a folder";
  if (wanted == Wanted::File && !S_ISREG(found.st_mode)) return "is not a file";
  if (found.st_uid != ::geteuid() && found.st_uid != 0) {
    return fmt::format("belongs to user {}", found.st_uid);
  }
  if ((found.st_mode & kOthersWrite) != 0) {
    return fmt::format("may be written by others (mode {:03o})", found.st_mode & 0777);
  }
  return {};
}

Result<OpenFile> open_trusted(int folder, const fs::path& name, const fs::path& path,
                              Wanted wanted) {
  // O_PATH suffices for a folder, which may be searchable but not readable. Opening something that
  // is not a file for reading might block.
  OpenFile file(::openat(
      folder, name.c_str(),
      O_NOFOLLOW | O_CLOEXEC | (wanted == Wanted::Folder ? O_PATH : O_RDONLY | O_NONBLOCK)));
  if (!file.is_open()) {
    return errno == ELOOP ? refused(path, "is a link") : system_error(path, "opened", errno);
  }
  struct stat found{};
  if (::fstat(file.number(), &found) != 0) return system_error(path, "looked at", errno);
  if (const std::string doubt = find_doubt(found, wanted); !doubt.empty()) {
    return refused(path, doubt);
  }
  return file;
}

}  // namespace

Result<OpenFile> open_trusted_folder(const fs::path& path) {
  // With a slash at the end, a link would be followed.
  const fs::path name = path.has_filename() ? path : path.parent_path();
  return open_trusted(AT_FDCWD, name, path, Wanted::Folder);
}

Result<OpenFile> open_trusted_folder_in(const OpenFile& folder, const fs::path& path) {
  return open_trusted(folder.number(), path.filename(), path, Wanted::Folder);
}

Result<OpenFile> open_trusted_file_in(const OpenFile& folder, const fs::path& path) {
  return open_trusted(folder.number(), path.filename(), path, Wanted::File);
}

bool is_missing(const Error& error) {
  return error.native_code == ENOENT || error.native_code == ENOTDIR;
}

Status make_private_folders(const fs::path& path) {
  const auto is_there = [&] {
    return ::mkdir(path.c_str(), kPrivateFolder) == 0 || errno == EEXIST;
  };
  if (is_there()) return Ok{};
  const int code = errno;
  const fs::path above = path.parent_path();
  if (code != ENOENT || above.empty() || above == path) return system_error(path, "made", code);
  CINCH_TRY(make_private_folders(above));
  return is_there() ? Status(Ok{}) : system_error(path, "made", errno);
}

Status make_folder_in(const OpenFile& folder, const fs::path& path) {
  if (::mkdirat(folder.number(), path.filename().c_str(), kReadableFolder) == 0) return Ok{};
  return errno == EEXIST ? Status(Ok{}) : system_error(path, "made", errno);
}

}  // namespace cinch::rt
