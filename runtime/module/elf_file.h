// Shared libraries as files, before the system's loader sees them.
#pragma once
#include <filesystem>

#include "runtime/core/error.h"

namespace cinch::rt {

/// Is it a regular file that begins as an ELF file does? False where it cannot be read.
bool is_elf_file(const std::filesystem::path& path);

/// The loader maps what the headers of a file name, and a process that touches such a page behind
/// the file's end is killed. Errors: Io, CorruptFile (no ELF file of 64 bits, or one cut short).
Status check_elf_file(const std::filesystem::path& path);

}  // namespace cinch::rt
