// Walks the tokens of a file in step with the tree. Passes each token, with the comments before it,
// to a LayoutStream. All tokens and comments pass through here in order, so the formatter cannot
// lose any.
#pragma once

#include "dsl/syntax/layout_stream.h"
#include "dsl/syntax/token.h"

namespace cinch::dsl {

class TokenCursor {
 public:
  /// The room between a token and the one before it.
  enum class Gap : unsigned char {
    /// Removes blank lines.
    Tight,
    /// Keeps one of several blank lines: between statements, items and declarations.
    Keep,
    /// At least one blank line.
    Open,
  };

  TokenCursor(const SourceBuffer& source, TokenStream stream, LayoutStream& out);

  /// Writes the next token.
  void take();
  /// Writes the next token, which must read `text`.
  void take(std::string_view text);
  /// The same for a closing bracket. Drops an optional comma before it.
  void close(std::string_view text);
  /// Does the next token read `text`?
  bool is_next(std::string_view text) const { return stream_.tokens[next_].text == text; }
  /// The gap before the next token.
  void set_gap(Gap gap) { gap_ = gap; }
  /// Writes the comments after the last token.
  void finish();

 private:
  void write(const Token& token);
  void write_comments(const Token& token);
  void add_comment(const ast::Comment& comment, const Token& token,
                   std::vector<LayoutStream::Piece>& pieces);
  std::size_t line_ends_before(std::uint32_t begin) const;
  bool ends_its_line(const ast::Comment& comment, const Token& token) const;
  bool has_blank_line_before(const Token& token) const;

  const SourceBuffer& source_;
  TokenStream stream_;
  LayoutStream& out_;
  std::size_t next_ = 0;
  std::size_t next_comment_ = 0;
  // The end of the last token or comment that was written.
  std::uint32_t written_ = 0;
  bool is_opened_ = false;  // was that an opening bracket?
  Gap gap_ = Gap::Tight;
};

}  // namespace cinch::dsl
