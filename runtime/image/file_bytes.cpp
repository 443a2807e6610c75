// Whole files through stdio; the temporary name is drawn, so that two writers, be they of one
// process or of two machines with one disk, do not share one.
#include "runtime/image/file_bytes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>

namespace cinch::rt {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

tl::unexpected<Error> io_error(const char* verb, const std::filesystem::path& path, int code) {
  return fail(ErrorKind::Io,
              fmt::format("cannot {} {}: {}", verb, path.string(), std::strerror(code)), code);
}

}  // namespace

Result<std::vector<std::uint8_t>> read_file_bytes(const std::filesystem::path& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return io_error("open", path, errno);
  std::vector<std::uint8_t> bytes;
  std::uint8_t chunk[1 << 16];
  while (const std::size_t got = std::fread(chunk, 1, sizeof chunk, file.get())) {
    bytes.insert(bytes.end(), chunk, chunk + got);
  }
  if (std::ferror(file.get())) return io_error("read", path, errno);
  return bytes;
}

Status write_file_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::filesystem::path temporary = path;
  std::random_device random;
  temporary += fmt::format(".{:08x}{:08x}.partial", random(), random());
  File file(std::fopen(temporary.c_str(), "wb"));
  if (!file) return io_error("write", path, errno);
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() &&
                 std::fflush(file.get()) == 0 && ::fsync(::fileno(file.get())) == 0;
  written = std::fclose(file.release()) == 0 && written;
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    std::remove(temporary.c_str());
    return io_error("write", path, code);
  }
  return Ok{};
}

}  // namespace cinch::rt
