// Whole files through descriptors; the temporary name is drawn, so that two writers, be they of one
// process or of two machines with one disk, do not share one.
#include "runtime/image/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

namespace cinch::rt {
namespace {

// What a file of nobody in particular is made with: the process's umask takes away from it.
constexpr unsigned kPlainMode = 0666;

tl::unexpected<Error> io_error(const char* verb, const std::filesystem::path& path, int code) {
  return fail(ErrorKind::Io,
              fmt::format("cannot {} {}: {}", verb, path.string(), std::strerror(code)), code);
}

bool write_whole(int file, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return true;
}

// `shown` is for messages.
Status write_named(int folder, const std::string& name, const std::filesystem::path& shown,
                   std::span<const std::uint8_t> bytes, unsigned mode) {
  std::random_device random;
  const std::string temporary = fmt::format("{}.{:08x}{:08x}.partial", name, random(), random());
  OpenFile file(::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open()) return io_error("write", shown, errno);
  bool written = write_whole(file.number(), bytes) && ::fsync(file.number()) == 0;
  written = file.close() && written;
  if (!written || ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
    const int code = errno;
    ::unlinkat(folder, temporary.c_str(), 0);
    return io_error("write", shown, code);
  }
  return Ok{};
}

}  // namespace

OpenFile::~OpenFile() {
  if (is_open()) (void)close();
}

bool OpenFile::close() {
  return ::close(std::exchange(number_, -1)) == 0;
}

Result<std::vector<std::uint8_t>> read_file_bytes(const OpenFile& file,
                                                  const std::filesystem::path& path) {
  std::vector<std::uint8_t> bytes;
  std::uint8_t chunk[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.number(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path, errno);
    if (got == 0) return bytes;
    bytes.insert(bytes.end(), chunk, chunk + got);
  }
}

Result<std::vector<std::uint8_t>> read_file_bytes(const std::filesystem::path& path) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return io_error("open", path, errno);
  return read_file_bytes(file, path);
}

Status write_file_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  return write_named(AT_FDCWD, path.string(), path, bytes, kPlainMode);
}

Status write_file_bytes_in(const OpenFile& folder, const std::filesystem::path& path,
                           std::span<const std::uint8_t> bytes, unsigned mode) {
  return write_named(folder.number(), path.filename().string(), path, bytes, mode);
}

}  // namespace cinch::rt
