// Payloads on disk: a file holds one, as it is sent.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// Reads the bytes of a payload. If the file is no payload, reads only enough to show that. Errors:
/// Io.
Result<std::vector<std::uint8_t>> read_payload_file(const std::filesystem::path& path);

}  // namespace cinch::rt
