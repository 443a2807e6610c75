// Whole files as bytes: reading, and writing so that nobody ever sees half a file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// Errors: Io, naming the path and the system's reason.
Result<std::vector<std::uint8_t>> read_file_bytes(const std::filesystem::path& path);

/// Writes a temporary file in the same folder, then renames it onto `path`. Errors: Io; the
/// temporary file is then removed and what stood at `path` is untouched.
Status write_file_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

}  // namespace cinch::rt
