// Whole-file input and output; see output_file.h.
#include "compiler/driver/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>

#include "compiler/driver/exit_code.h"
#include "compiler/driver/interrupt.h"

namespace cinch::driver {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(const char* what, const std::string& path) {
  const std::string reason = std::strerror(errno);
  throw CommandError(ExitCode::AtFault, std::string(what) + " '" + path + "': " + reason);
}

}  // namespace

std::string read_text_or_input(const std::string& path) {
  if (path != kStandardInput) return read_text_file(path);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  const std::string unfinished = path + ".unfinished-" + std::to_string(getpid());
  File file(std::fopen(unfinished.c_str(), "wb"));
  if (!file) fail("cannot write", path);
  set_unfinished_file(unfinished);
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  const bool is_closed = std::fclose(file.release()) == 0;
  const bool is_done =
      is_written && is_closed && std::rename(unfinished.c_str(), path.c_str()) == 0;
  const int reason = errno;
  if (!is_done) std::remove(unfinished.c_str());
  set_unfinished_file("");
  errno = reason;
  if (!is_done) fail("cannot write", path);
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

}  // namespace cinch::driver
