// Escapes control characters and marks of writing direction; see visible_text.h.
#include "runtime/core/visible_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

std::uint32_t code_point(std::string_view character) {
  const std::uint32_t first = static_cast<Byte>(character[0]);
  std::uint32_t point = character.size() == 1 ? first : first & (0x7fu >> character.size());
  for (const char byte : character.substr(1)) {
    point = point << 6 | (static_cast<Byte>(byte) & 0x3fu);
  }
  return point;
}

bool is_control(std::uint32_t point) {
  return point < 0x20 ? point != '\n' && point != '\t' : point >= 0x7f && point < 0xa0;
}
// Marks of writing direction: what follows would be shown in another order than it has.
bool is_direction(std::uint32_t point) {
  return point == 0x61c || point == 0x200e || point == 0x200f ||
         (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string visible;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_bytes(text, at);
    const std::string_view character = text.substr(at, std::max<std::size_t>(size, 1));
    const std::uint32_t point = size == 0 ? 0 : code_point(character);
    if (size == 0) {
      visible += fmt::format("\\x{:02x}", static_cast<Byte>(character[0]));
    } else if (is_control(point) || is_direction(point)) {
      visible += point < 0x80 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
    } else {
      visible += character;
    }
    at += character.size();
  }
  return visible;
}

}  // namespace cinch::rt
