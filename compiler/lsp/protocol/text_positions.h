// Converts between places in a text as editors count them (lines and UTF-16 code units, both from
// 0) and offsets in bytes of UTF-8.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace cinch::lsp {

struct Position {
  std::uint32_t line = 0;
  std::uint32_t character = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// The lines of one text, which must outlive this. `\n`, `\r\n` and `\r` end a line.
class TextPositions {
 public:
  explicit TextPositions(std::string_view text);

  /// An offset after the end counts as the end.
  Position position(std::uint32_t offset) const;
  /// A line after the last means the end of the text; a character after the end of a line means the
  /// end of that line. A place within a code point means its begin.
  std::uint32_t offset(Position position) const;

 private:
  std::string_view text_;
  std::vector<std::uint32_t> line_starts_;
};

}  // namespace cinch::lsp
