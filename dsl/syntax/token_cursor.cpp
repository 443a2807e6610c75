// A comment alone on its line keeps its own line, a comment at the end of a line stays there, and a
// comment between tokens stays between them. The formatter adds a line end only where the layout
// allows one, so that line ends keep their meaning.
#include <algorithm>

#include "dsl/syntax/token_cursor.h"
#include "runtime/core/check.h"

namespace cinch::dsl {
TokenCursor::TokenCursor(const SourceBuffer& source, TokenStream stream, LayoutStream& out)
    : source_(source), stream_(std::move(stream)), out_(out) {
  std::erase_if(stream_.tokens, [](const Token& token) { return token.kind == TokenKind::End; });
}

std::size_t TokenCursor::line_ends_before(std::uint32_t begin) const {
  if (begin <= written_) return 0;
  const std::string_view between = source_.text({source_.id(), written_, begin});
  return static_cast<std::size_t>(std::count(between.begin(), between.end(), '\n'));
}

bool TokenCursor::ends_its_line(const ast::Comment& comment, const Token& token) const {
  const std::string_view rest = source_.text({source_.id(), comment.span.end, token.span.begin});
  if (comment.kind != ast::CommentKind::Block || token.kind == TokenKind::EndOfFile) return true;
  const std::size_t first = rest.find_first_not_of(" \t\r");
  return first != std::string_view::npos && rest[first] == '\n';
}

// Is there a blank line between the last written token or comment and this token, apart from
// comments?
bool TokenCursor::has_blank_line_before(const Token& token) const {
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

void TokenCursor::add_comment(const ast::Comment& comment, const Token& token,
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

void TokenCursor::write_comments(const Token& token) {
  std::vector<LayoutStream::Piece> pieces;
  // An existing empty line is enough.
  if (gap_ == Gap::Open && has_blank_line_before(token)) gap_ = Gap::Keep;
  while (next_comment_ < stream_.comments.size() &&
         stream_.comments[next_comment_].span.begin < token.span.begin) {
    add_comment(stream_.comments[next_comment_++], token, pieces);
  }
  if (!pieces.empty()) out_.insert_behind_last_text(pieces);
}

void TokenCursor::write(const Token& token) {
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

void TokenCursor::take() {
  write(stream_.tokens[next_++]);
}

void TokenCursor::take(std::string_view text) {
  CINCH_CHECK(is_next(text), "the formatter expects `" + std::string(text) + "` and finds `" +
                                 std::string(stream_.tokens[next_].text) + "`");
  take();
}

void TokenCursor::close(std::string_view text) {
  if (is_next(",")) ++next_;
  take(text);
}

void TokenCursor::finish() {
  gap_ = Gap::Keep;
  write_comments(stream_.tokens.back());
}

// Tables over token.def: spelling, keywords, descriptions.

namespace {

struct Spelling {
  TokenKind kind;
  std::string_view text;
};

constexpr Spelling kKeywords[] = {
#define CINCH_KEYWORD(kind, text) {TokenKind::kind, text},
#define CINCH_PUNCT(kind, text)
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
};

constexpr std::string_view kSpellings[] = {
#define CINCH_KEYWORD(kind, text) text,
#define CINCH_PUNCT(kind, text) text,
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
};

}  // namespace

std::string_view spelling(TokenKind kind) {
  const auto idx = static_cast<std::size_t>(kind);
  return idx < std::size(kSpellings) ? kSpellings[idx] : std::string_view();
}

TokenKind word_kind(std::string_view word) {
  const auto found = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                  [&](const Spelling& row) { return row.text == word; });
  return found != std::end(kKeywords) ? found->kind : TokenKind::Name;
}

std::string describe(const Token& token) {
  // Cuts longer texts, since a message is one line.
  constexpr std::size_t kMaxShown = 40;
  switch (token.kind) {
    case TokenKind::End:
      return token.text == ";" ? "`;`" : "the end of the line";
    case TokenKind::EndOfFile:
      return "the end of the file";
    case TokenKind::String:
      return "a string";
    default:
      break;
  }
  std::string text(token.text.substr(0, kMaxShown));
  if (token.text.size() > kMaxShown) text += "…";
  return (token.kind <= TokenKind::KwPi ? "the reserved word `" : "`") + text + "`";
}

}  // namespace cinch::dsl
