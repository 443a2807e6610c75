// Whole-file input; see whole_file.h.
#include "compiler/service/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "compiler/service/service_error.h"

namespace cinch::service {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(const std::string& path, int reason) {
  throw ServiceError(Fault::File, "cannot read '" + path + "': " + std::strerror(reason));
}

template <typename Bytes>
Bytes read_whole(const std::string& path) {
  if (std::filesystem::is_directory(path)) fail(path, EISDIR);
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail(path, errno);
  Bytes bytes;
  char block[65536];
  while (const std::size_t got = std::fread(block, 1, sizeof block, file.get())) {
    bytes.insert(bytes.end(), block, block + got);
  }
  if (std::ferror(file.get())) fail(path, errno);
  return bytes;
}

}  // namespace

std::string read_text_file(const std::string& path) {
  return read_whole<std::string>(path);
}

std::vector<std::uint8_t> read_binary_file(const std::string& path) {
  return read_whole<std::vector<std::uint8_t>>(path);
}

}  // namespace cinch::service
