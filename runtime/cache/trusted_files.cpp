// Which files are trusted; see open_file.h.
#include "runtime/cache/open_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cinch::rt {
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

// O_PATH suffices for a folder, which may be searchable but not readable. Opening something that is
// not a file for reading might block.
int flags_for(Wanted wanted) {
  return O_NOFOLLOW | O_CLOEXEC | (wanted == Wanted::Folder ? O_PATH : O_RDONLY | O_NONBLOCK);
}

Result<OpenFile> open_trusted(int folder, const fs::path& name, const fs::path& path,
                              Wanted wanted) {
  OpenFile file(::openat(folder, name.c_str(), flags_for(wanted)));
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
