// Whole-file input and output; see output_file.h.
#include "compiler/driver/output_file.h"

#include "compiler/driver/exit_code.h"
#include "compiler/driver/interrupt.h"
#include "runtime/core/file_bytes.h"

namespace cinch::driver {

std::string read_text_file(const std::string& path) {
  return value_or_throw(rt::read_text_file(path));
}

std::string read_text_or_input(const std::string& path) {
  return path == kStandardInput ? value_or_throw(rt::read_text_input()) : read_text_file(path);
}

void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  value_or_throw(rt::write_file_bytes(path, bytes, set_unfinished_file));
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

}  // namespace cinch::driver
