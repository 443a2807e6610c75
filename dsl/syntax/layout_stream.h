// Text with groups and possible line breaks, laid out for a width: the engine under the formatter.
// A stream of ops (after D. Oppen, "Prettyprinting", 1980): a group whose content fits in the rest
// of its line stands on one line, else every Line and SoftLine directly in it breaks. Knows nothing
// of the language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::dsl {

enum class LayoutOp : unsigned char {
  /// Text that stays in one piece; it may hold line ends (a block comment).
  Text,
  /// A comment at the end of a line: two blanks before it, lined up with those of the lines around
  /// it, and no part of the line's width. A HardLine must follow.
  Trailing,
  /// One blank; none at a line's start, behind `(` or `[`, or beside another.
  Space,
  /// A blank, or a line end where the group breaks.
  Line,
  /// Nothing, or a line end where the group breaks.
  SoftLine,
  /// A line end; breaks the groups around it. None where the line is empty anyway.
  HardLine,
  /// An empty line; none at the start, behind another, or behind a line that ends with an opening
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
  /// Puts a run of ops right behind the last text and the ends of groups and indents that follow
  /// it.
  struct Piece {
    LayoutOp kind;
    std::string_view text;
  };
  void insert_behind_last_text(const std::vector<Piece>& pieces);

  /// Lays everything out; ends with a line end unless empty. Linear in the stream.
  std::string render(std::size_t width) const;

 private:
  std::vector<Piece> pieces_;
  std::size_t behind_last_text_ = 0;
};

}  // namespace cinch::dsl
