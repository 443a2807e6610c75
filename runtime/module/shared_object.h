// SharedObject: code loaded from the bytes of a shared object, without a file on disk.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

class SharedObject {
 public:
  /// `what` is for messages: "kernels". Errors: CorruptFile (not a loadable shared object), Io (no
  /// memory file).
  static Result<SharedObject> load(std::span<const std::uint8_t> bytes, const std::string& what);

  SharedObject(SharedObject&&) noexcept;
  SharedObject& operator=(SharedObject&&) noexcept;
  ~SharedObject();

  /// Null if there is no such symbol.
  void* find(const char* symbol) const;

 private:
  SharedObject() = default;
  void* handle_ = nullptr;
  int file_ = -1;
};

// Checks shared libraries as files, before the system's loader opens them.

/// Is it a regular file that begins like an ELF file? False if it cannot be read.
bool is_elf_file(const std::filesystem::path& path);

/// Checks that a file is as long as its headers say: the loader maps whatever the headers name, and
/// a process that touches a page after the file's end is killed. Errors: Io, CorruptFile (not an
/// ELF file of 64 bits, or truncated).
Status check_elf_file(const std::filesystem::path& path);

// Finds libraries that are opened at run time.

/// The folder of the executable or shared library that contains this code, however it was started
/// or opened; links are followed. Empty if it is unknown.
std::filesystem::path own_folder();

/// Paths to try in turn: only what the environment variable names, if it is set. Otherwise this
/// code's own folder, ../lib, ../../lib, ../lib/cinch and cinch, if the file is there, then the
/// loader's own search.
std::vector<std::string> library_paths(const char* file_name, const char* variable);

/// What a library's entry function leads to, such as a table of functions; and the library's path.
struct OpenedLibrary {
  const void* table = nullptr;
  std::string path;
};

/// Opens the libraries in turn, with `flags` of dlopen, until `accept` makes a table of the address
/// of the function `entry`; it returns null for a library of another version. Errors: Unavailable
/// ("no MPI: " and the reasons, for `what` "MPI").
Result<OpenedLibrary> open_first_library(const std::vector<std::string>& paths, int flags,
                                         const char* entry, const char* what,
                                         const std::function<const void*(void*)>& accept);

}  // namespace cinch::rt
