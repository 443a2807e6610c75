// Escapes control characters; see visible_text.h.
#include "runtime/core/visible_text.h"

#include <fmt/format.h>

#include <cstddef>

namespace cinch::rt {
namespace {

using Byte = unsigned char;

bool is_continuation(Byte byte) {
  return (byte & 0xc0u) == 0x80u;
}

// The bytes of the UTF-8 character that begins at `at`; 0 if none does.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const Byte first = static_cast<Byte>(text[at]);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xc2 ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  if (at + size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_continuation(static_cast<Byte>(text[at + i]))) return 0;
  }
  return size;
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string visible;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_bytes(text, at);
    const Byte first = static_cast<Byte>(text[at]);
    const bool is_control = first < 0x20 ? first != '\n' && first != '\t' : first == 0x7f;
    const Byte second = size == 2 ? static_cast<Byte>(text[at + 1]) : 0;
    if (size == 0 || is_control) {
      visible += fmt::format("\\x{:02x}", first);
    } else if (first == 0xc2 && second < 0xa0) {  // U+0080 to U+009F
      visible += fmt::format("\\u{:04x}", second);
    } else {
      visible += text.substr(at, size);
    }
    at += size == 0 ? 1 : size;
  }
  return visible;
}

}  // namespace cinch::rt
