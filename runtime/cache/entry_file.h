// One entry of the cache as the bytes of a file: 40 bytes of preamble, a JSON text (key, title and
// imports; of a packed image how many bytes it unpacks to), then the image file (image_file.h), as
// it is or packed by Zstandard, at the next multiple of 16. Little endian, versioned, checksummed.
//
//   0  8 bytes "CINCHKRN"    8  u32 format version   12  u32 bytes of JSON
//   16 u64 bytes of the file 24 XXH3 128 of all bytes from 40 on (low, high)
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/cache/image_cache.h"
#include "runtime/core/error.h"

namespace cinch::rt {

/// `key` is the entry's file name without its ending.
std::vector<std::uint8_t> write_entry(const std::string& key, const CacheEntry& entry,
                                      EntryForm form);
/// Errors: CorruptFile (not an entry, truncated, changed, or of another key), VersionMismatch.
/// Messages follow the path: "was changed".
Result<CacheEntry> read_entry(std::span<const std::uint8_t> bytes, const std::string& key);
Result<StoredEntry> read_stored_entry(std::span<const std::uint8_t> bytes, const std::string& key);

}  // namespace cinch::rt
