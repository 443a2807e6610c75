// The tokens of a file in the order in which the formatter prints them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/syntax/layout_stream.h"
#include "dsl/syntax/syntax.h"
#include "dsl/syntax/token.h"
#include "runtime/core/check.h"

namespace cinch::dsl {

/// Walks the tokens of a file in step with the tree. Passes each token, with the comments before
/// it, to a LayoutStream. All tokens and comments pass through here in order, so the formatter
/// cannot lose any. A comment alone on its line keeps its own line, a comment at the end of a line
/// stays there, and a comment between tokens stays between them. The formatter adds a line end only
/// where the layout allows one, so that line ends keep their meaning.
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

  TokenCursor(const SourceBuffer& source, TokenStream stream, LayoutStream& out)
      : source_(source), stream_(std::move(stream)), out_(out) {
    std::erase_if(stream_.tokens, [](const Token& token) { return token.kind == TokenKind::End; });
  }

  /// Writes the next token.
  void take() { write(stream_.tokens[next_++]); }

  /// Writes the next token, which must read `text`.
  void take(std::string_view text) {
    CINCH_CHECK(is_next(text), "the formatter expects `" + std::string(text) + "` and finds `" +
                                   std::string(stream_.tokens[next_].text) + "`");
    take();
  }

  /// The same for a closing bracket. Drops an optional comma before it.
  void close(std::string_view text) {
    if (is_next(",")) ++next_;
    take(text);
  }

  /// Writes the comments after the last token.
  void finish() {
    gap_ = Gap::Keep;
    write_comments(stream_.tokens.back());
  }

  /// Does the next token read `text`?
  bool is_next(std::string_view text) const { return stream_.tokens[next_].text == text; }
  /// The gap before the next token.
  void set_gap(Gap gap) { gap_ = gap; }

 private:
  std::size_t line_ends_before(std::uint32_t begin) const {
    if (begin <= written_) return 0;
    const std::string_view between = source_.text({source_.id(), written_, begin});
    return static_cast<std::size_t>(std::count(between.begin(), between.end(), '\n'));
  }

  bool ends_its_line(const ast::Comment& comment, const Token& token) const {
    const std::string_view rest = source_.text({source_.id(), comment.span.end, token.span.begin});
    if (comment.kind != ast::CommentKind::Block || token.kind == TokenKind::EndOfFile) return true;
    const std::size_t first = rest.find_first_not_of(" \t\r");
    return first != std::string_view::npos && rest[first] == '\n';
  }

  // Is there a blank line between the last written token or comment and this token, apart from
  // comments?
  bool has_blank_line_before(const Token& token) const {
    std::uint32_t from = written_;
    const auto is_wide = [&](std::uint32_t to) {
      const std::string_view between = source_.text({source_.id(), from, std::max(from, to)});
      return std::count(between.begin(), between.end(), '\n') > 1;
    };
    for (std::size_t i = next_comment_; i < stream_.comments.size(); ++i) {
      const Span& span = stream_.comments[i].span;
      if (span.begin >= token.span.begin) break;
      if (is_wide(span.begin)) return true;
      from = span.end;
    }
    return is_wide(token.span.begin);
  }

  void add_comment(const ast::Comment& comment, const Token& token,
                   std::vector<LayoutStream::Piece>& pieces) {
    const std::string_view text = source_.text(comment.span);
    const bool is_first = written_ == 0;
    const std::size_t line_ends = line_ends_before(comment.span.begin);
    if (line_ends > 0 || is_first) {
      const bool is_open = gap_ == Gap::Open;
      if (is_open) gap_ = Gap::Keep;
      pieces.push_back({LayoutOp::HardLine, {}});
      if (line_ends > 1 || is_open) pieces.push_back({LayoutOp::Blank, {}});
      pieces.push_back({LayoutOp::Text, text});
      if (ends_its_line(comment, token)) pieces.push_back({LayoutOp::HardLine, {}});
      pieces.push_back({LayoutOp::Space, {}});
    } else if (comment.kind != ast::CommentKind::Block) {
      pieces.push_back({LayoutOp::Trailing, text});
      pieces.push_back({LayoutOp::HardLine, {}});
    } else {
      pieces.push_back({LayoutOp::Space, {}});
      pieces.push_back({LayoutOp::Text, text});
      if (ends_its_line(comment, token)) pieces.push_back({LayoutOp::HardLine, {}});
      // Such a token directly follows the one before it, without a blank.
      const bool hugs_left = token.text == ")" || token.text == "]" || token.text == "," ||
                             token.text == ";" || token.text == "." || token.text == ":";
      if (!hugs_left) pieces.push_back({LayoutOp::Space, {}});
    }
    written_ = comment.span.end;
    is_opened_ = false;
  }

  void write_comments(const Token& token) {
    std::vector<LayoutStream::Piece> pieces;
    // An existing empty line is enough.
    if (gap_ == Gap::Open && has_blank_line_before(token)) gap_ = Gap::Keep;
    while (next_comment_ < stream_.comments.size() &&
           stream_.comments[next_comment_].span.begin < token.span.begin) {
      add_comment(stream_.comments[next_comment_++], token, pieces);
    }
    if (!pieces.empty()) out_.insert_behind_last_text(pieces);
  }

  void write(const Token& token) {
    write_comments(token);
    // A blank line behind a bracket is dropped, so it must not break the bracket's group either.
    const bool is_kept = gap_ == Gap::Keep && !is_opened_ && line_ends_before(token.span.begin) > 1;
    const bool is_wide = gap_ == Gap::Open || is_kept;
    if (is_wide) out_.op(LayoutOp::Blank);
    gap_ = Gap::Tight;
    out_.text(token.text);
    written_ = token.span.end;
    is_opened_ = token.text == "{" || token.text == "(" || token.text == "[";
  }

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
