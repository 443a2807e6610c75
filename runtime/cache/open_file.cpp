// Whole files through descriptors; see open_file.h. Temporary names are random, so that two
// writers, in one process or on two machines with one disk, do not share one.
#include "runtime/cache/open_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>

#include "runtime/core/files/file_bytes.h"

namespace cinch::rt {

OpenFile::~OpenFile() {
  if (is_open()) (void)close();
}

bool OpenFile::close() {
  return ::close(std::exchange(number_, -1)) == 0;
}

Result<std::vector<std::uint8_t>> read_file_bytes(const OpenFile& file,
                                                  const std::filesystem::path& path) {
  auto reader = FileReader::open_descriptor(file.number(), quoted_path(path.string()));
  CINCH_TRY(reader);
  return reader->read_all({});
}

Status write_file_bytes_in(const OpenFile& folder, const std::filesystem::path& path,
                           std::span<const std::uint8_t> bytes, unsigned mode) {
  const std::string name = path.filename().string(), shown = quoted_path(path.string());
  std::random_device random;
  const std::string temporary = fmt::format("{}.{:08x}{:08x}.partial", name, random(), random());
  const int within = folder.number();
  OpenFile file(::openat(within, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open()) return file_error("write", shown, errno);
  const auto code_of = [](bool is_done) { return is_done ? 0 : errno; };
  int code = write_all(file.number(), bytes);
  if (code == 0) code = code_of(::fsync(file.number()) == 0);
  const int closing = code_of(file.close());
  if (code == 0) code = closing;
  if (code == 0) code = code_of(::renameat(within, temporary.c_str(), within, name.c_str()) == 0);
  if (code == 0) return Ok{};
  ::unlinkat(within, temporary.c_str(), 0);
  return file_error("write", shown, code);
}

}  // namespace cinch::rt
