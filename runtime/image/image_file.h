// The file form of a ProgramImage: 48 bytes of preamble, a JSON text with all metadata, then the
// constants and the binary unchanged. Little endian, versioned, checksummed. Reading treats the
// bytes as untrusted and validates the image.
//
//   0  8 bytes "CINCHIMG"    8  u32 format version   12  u32 zero
//   16 u64 bytes of the file 24 u64 bytes of JSON    32  XXH3 128 of all bytes from 48 on (low,
//   high) 48 JSON, zero bytes to a multiple of 16, then each constant and the binary, each at a
//   multiple of 16
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

inline constexpr std::uint32_t kImageFormatVersion = 11;

/// The whole file as bytes. The same image gives the same bytes.
std::vector<std::uint8_t> write_image(const ProgramImage& image);

/// Reads the image in `bytes`. Errors: CorruptFile (not an image, truncated, too long, changed, or
/// not well formed), VersionMismatch.
Result<ProgramImage> read_image(std::span<const std::uint8_t> bytes);

/// The same to and from a file. Saving writes a temporary file next to the target and renames it,
/// so that a partial file is never visible. Errors also: Io.
Status save_image(const ProgramImage& image, const std::filesystem::path& path);
Result<ProgramImage> load_image(const std::filesystem::path& path);

// Converts the metadata of an image to and from JSON: everything except the bytes of constants and
// binary. Internal to runtime/image.

nlohmann::json image_to_json(const ProgramImage& image);

/// Leaves constants and binary empty. Does not check indices (validate.h). Errors: CorruptFile,
/// naming the place.
Result<ProgramImage> image_from_json(const nlohmann::json& in);

}  // namespace cinch::rt
