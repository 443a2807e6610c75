// Bodies of text_positions.h.
#include "compiler/lsp/protocol/text_positions.h"

#include <algorithm>

namespace cinch::lsp {

namespace {

bool is_line_end(std::string_view text, std::size_t at) {
  if (text[at] == '\n') return true;
  return text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n');
}

bool continues_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u;
}

// A code point of four bytes is a surrogate pair.
std::uint32_t units_of(char first_byte) {
  return static_cast<unsigned char>(first_byte) >= 0xf0u ? 2 : 1;
}

}  // namespace

TextPositions::TextPositions(std::string_view text) : text_(text), line_starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_line_end(text, i)) line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
  }
}

Position TextPositions::position(std::uint32_t offset) const {
  offset = std::min(offset, static_cast<std::uint32_t>(text_.size()));
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::uint32_t>(next - line_starts_.begin()) - 1;
  Position position{line, 0};
  for (std::uint32_t i = line_starts_[line]; i < offset; ++i) {
    if (!continues_code_point(text_[i])) position.character += units_of(text_[i]);
  }
  return position;
}

std::uint32_t TextPositions::offset(Position position) const {
  const auto size = static_cast<std::uint32_t>(text_.size());
  if (position.line >= line_starts_.size()) return size;
  std::uint32_t at = line_starts_[position.line];
  std::uint32_t left = position.character;
  while (at < size && text_[at] != '\n' && text_[at] != '\r' && left >= units_of(text_[at])) {
    left -= units_of(text_[at]);
    ++at;
    while (at < size && continues_code_point(text_[at])) ++at;
  }
  return at;
}

}  // namespace cinch::lsp
