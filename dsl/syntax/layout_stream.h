// Lays out text with groups and possible line breaks for a width; the formatter uses this. The
// input is a stream of ops (after D. Oppen, "Prettyprinting", 1980). A group whose content fits in
// the rest of its line goes on one line. Otherwise every Line and SoftLine directly in it breaks.
// Knows nothing of the language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::dsl {

enum class LayoutOp : unsigned char {
  /// Text that stays in one piece. It may contain line ends (a block comment).
  Text,
  /// A comment at the end of a line, after two blanks, aligned with those of neighbouring lines. It
  /// does not count for the width. A HardLine must follow.
  Trailing,
  /// One blank; none at the start of a line, after `(` or `[`, or next to another.
  Space,
  /// A blank, or a line end if the group breaks.
  Line,
  /// Nothing, or a line end if the group breaks.
  SoftLine,
  /// A line end, which breaks the groups around it. None if the line is empty anyway.
  HardLine,
  /// An empty line; none at the start, after another, or after a line that ends with an opening
  /// bracket.
  Blank,
  Begin,
  End,
  Indent,
  Dedent,
};

class LayoutStream {
 public:
  void text(std::string_view piece);
  void op(LayoutOp kind);
  /// Inserts ops directly after the last text and the ends of groups and indents that follow it.
  struct Piece {
    LayoutOp kind;
    std::string_view text;
  };
  void insert_behind_last_text(const std::vector<Piece>& pieces);

  /// Lays everything out. The result ends with a line end unless it is empty. Takes linear time.
  std::string render(std::size_t width) const;

 private:
  std::vector<Piece> pieces_;
  std::size_t behind_last_text_ = 0;
};

}  // namespace cinch::dsl
