// Whole files through descriptors; see open_file.h. The temporary name is drawn, so that two
// writers, be they of one process or of two machines with one disk, do not share one.
#include "runtime/cache/open_file.h"

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

Status write_file_bytes_in(const OpenFile& folder, const std::filesystem::path& path,
                           std::span<const std::uint8_t> bytes, unsigned mode) {
  const std::string name = path.filename().string();
  std::random_device random;
  const std::string temporary = fmt::format("{}.{:08x}{:08x}.partial", name, random(), random());
  const int within = folder.number();
  OpenFile file(::openat(within, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open()) return io_error("write", path, errno);
  bool written = write_whole(file.number(), bytes) && ::fsync(file.number()) == 0;
  written = file.close() && written;
  if (!written || ::renameat(within, temporary.c_str(), within, name.c_str()) != 0) {
    const int code = errno;
    ::unlinkat(within, temporary.c_str(), 0);
    return io_error("write", path, code);
  }
  return Ok{};
}

}  // namespace cinch::rt
