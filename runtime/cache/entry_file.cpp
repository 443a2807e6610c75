// Bodies of entry_file.h.
#include "runtime/cache/entry_file.h"

#include <zstd.h>

#include <cstring>
#include <nlohmann/json.hpp>

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

Result<std::vector<std::uint8_t>> unpack(std::span<const std::uint8_t> packed,
                                         std::uint64_t num_bytes) {
  if (num_bytes > kMostUnpackedBytes) return corrupt("unpacks to too much");
  std::vector<std::uint8_t> bytes(num_bytes);
  const std::size_t size =
      ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0 || size != bytes.size()) return corrupt("cannot be unpacked");
  return bytes;
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
  const auto text = checked_meta(bytes);
  CINCH_TRY(text);
  auto meta = read_meta(*text, key);
  CINCH_TRY(meta);
  const auto stored = bytes.subspan(image_offset(text->size()));
  if (const std::optional<std::uint64_t> num_bytes = meta->unpacked_bytes) {
    auto unpacked = unpack(stored, *num_bytes);
    CINCH_TRY(unpacked);
    meta->entry.image = std::move(*unpacked);
  } else {
    meta->entry.image.assign(stored.begin(), stored.end());
  }
  return std::move(meta->entry);
}

Result<CacheEntry> read_entry(std::span<const std::uint8_t> bytes, const std::string& key) {
  auto stored = read_stored_entry(bytes, key);
  CINCH_TRY(stored);
  auto image = read_image(stored->image);
  CINCH_TRY(image);
  return CacheEntry{std::move(stored->title), std::move(stored->imports), std::move(*image)};
}

}  // namespace cinch::rt
