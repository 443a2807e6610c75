// Checks shared libraries as files, before the system's loader opens them.
#pragma once
#include <filesystem>

#include "runtime/core/error.h"

namespace cinch::rt {

/// Is it a regular file that begins like an ELF file? False if it cannot be read.
bool is_elf_file(const std::filesystem::path& path);

/// Checks that a file is as long as its headers say: the loader maps whatever the headers name, and
/// a process that touches a page after the file's end is killed. Errors: Io, CorruptFile (not an
/// ELF file of 64 bits, or truncated).
Status check_elf_file(const std::filesystem::path& path);

}  // namespace cinch::rt
