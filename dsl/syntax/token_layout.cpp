// lay_out(): angle brackets, pairs of brackets, intervals and line ends. If brackets do not match,
// two hints tell where one was meant to end: words that can only begin a statement, item or
// declaration, and the indents of lines.
#include "dsl/syntax/token.h"

#include <algorithm>
#include <utility>

#include "dsl/diag/foreign_words.h"

namespace cinch::dsl {

namespace {

bool is_closer(TokenKind kind) {
  return kind == TokenKind::RParen || kind == TokenKind::RBracket || kind == TokenKind::RBrace;
}

TokenKind closer_of(TokenKind opener) {
  if (opener == TokenKind::LParen) return TokenKind::RParen;
  return opener == TokenKind::LBracket ? TokenKind::RBracket : TokenKind::RBrace;
}

// Is an operand complete after this token, so that `in` after it is the keyword and not a name?
bool ends_operand(const Token& token) {
  switch (token.kind) {
    case TokenKind::Name:
    case TokenKind::Integer:
    case TokenKind::Float:
    case TokenKind::RParen:
    case TokenKind::RBracket:
    case TokenKind::RBrace:
    case TokenKind::AngleClose:
    case TokenKind::KwTrue:
    case TokenKind::KwFalse:
    case TokenKind::KwInf:
    case TokenKind::KwNan:
    case TokenKind::KwPi:
    case TokenKind::KwCompressor:
      return true;
    default:
      return false;
  }
}

// Does the line go on after this token: `{`, `=`, `->`, `:`, a comma, an operator or an opening
// bracket?
bool continues_line(TokenKind kind) {
  if (kind == TokenKind::KwAs) return true;
  const bool is_punctuation = kind >= TokenKind::LParen && kind <= TokenKind::Bang;
  return is_punctuation && !is_closer(kind) && kind != TokenKind::Semicolon;
}

// ---- angle brackets

bool is_text(const Token& token, std::string_view text) {
  return token.kind == TokenKind::Name && token.text == text;
}

// The index after the bracket that closes raw[open], or raw.size(). Gives up after a few tokens,
// since widths are short; this keeps the sweep linear.
std::size_t skip_parens(const std::vector<Token>& raw, std::size_t open) {
  constexpr std::size_t kMaxWidthTokens = 64;
  std::size_t depth = 0;
  const std::size_t end = std::min(raw.size(), open + kMaxWidthTokens);
  for (std::size_t i = open; i < end; ++i) {
    if (raw[i].kind == TokenKind::LParen) ++depth;
    if (raw[i].kind == TokenKind::RParen && --depth == 0) return i + 1;
  }
  return raw.size();
}

bool starts_with_greater(TokenKind kind) {
  return kind == TokenKind::Greater || kind == TokenKind::Shr || kind == TokenKind::GreaterEqual;
}

// Marks the angle brackets of widths and bitcasts. Cuts a `>>` or `>=` in two if its first `>`
// closes a width, and inserts all second halves together at the end.
class AngleMarker {
 public:
  explicit AngleMarker(std::vector<Token>& raw) : raw_(raw) {}

  void run() {
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      if (raw_[i].kind != TokenKind::Name) continue;
      mark_bitcast(i);
      mark_width(i);
    }
    if (!cuts_.empty()) cut();
  }

 private:
  struct Cut {
    std::size_t idx;
    TokenKind rest;
    std::string_view text;
  };

  void close_angle(std::size_t i) {
    const TokenKind kind = raw_[i].kind;
    if (kind == TokenKind::Shr) cuts_.push_back({i, TokenKind::Greater, raw_[i].text});
    if (kind == TokenKind::GreaterEqual) cuts_.push_back({i, TokenKind::Assign, raw_[i].text});
    raw_[i].kind = TokenKind::AngleClose;
  }

  // Marks the brackets of an `int<b>` at raw_[i]. Returns the index after it, or i if there is
  // none.
  std::size_t mark_width(std::size_t i) {
    if (!is_text(raw_[i], "int") && !is_text(raw_[i], "uint")) return i;
    if (i + 3 >= raw_.size() || raw_[i + 1].kind != TokenKind::Less) return i;
    const TokenKind kind = raw_[i + 2].kind;
    std::size_t close = raw_.size();
    if (kind == TokenKind::Name || kind == TokenKind::Integer) close = i + 3;
    if (kind == TokenKind::LParen) close = skip_parens(raw_, i + 2);
    if (close >= raw_.size() || !starts_with_greater(raw_[close].kind)) return i;
    raw_[i + 1].kind = TokenKind::AngleOpen;
    close_angle(close);
    return close + 1;
  }

  // Marks the brackets of a `bitcast<T>` at raw_[i], where T is a name or has a width.
  void mark_bitcast(std::size_t i) {
    if (!is_text(raw_[i], "bitcast") || i + 3 >= raw_.size()) return;
    if (raw_[i + 1].kind != TokenKind::Less || raw_[i + 2].kind != TokenKind::Name) return;
    const std::size_t behind_width = mark_width(i + 2);
    const bool shares_token = !cuts_.empty() && cuts_.back().idx + 1 == behind_width &&
                              cuts_.back().rest == TokenKind::Greater;
    const std::size_t close = std::max(behind_width, i + 3);
    if (shares_token) {
      cuts_.back().rest = TokenKind::AngleClose;
    } else if (close < raw_.size() && starts_with_greater(raw_[close].kind)) {
      close_angle(close);
    } else {
      return;
    }
    raw_[i + 1].kind = TokenKind::AngleOpen;
  }

  void cut() {
    std::vector<Token> result;
    result.reserve(raw_.size() + cuts_.size());
    auto next = cuts_.begin();
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      result.push_back(raw_[i]);
      if (next == cuts_.end() || next->idx != i) continue;
      Token& first = result.back();
      first.text = next->text.substr(0, 1);
      first.span.end = first.span.begin + 1;
      Token rest;
      rest.kind = next->rest;
      rest.text = next->text.substr(1);
      rest.span = {first.span.file, first.span.end, first.span.end + 1};
      result.push_back(rest);
      ++next;
    }
    raw_ = std::move(result);
  }

  std::vector<Token>& raw_;
  std::vector<Cut> cuts_;
};

// ---- brackets and line ends

class Layout {
 public:
  // `guesses`: brackets do not match, so words and indents tell where one was meant to end.
  Layout(TokenStream raw, DiagSink& sink, bool guesses)
      : stream_(std::move(raw)), sink_(sink), guesses_(guesses) {
    AngleMarker(stream_.tokens).run();
    out_.reserve(stream_.tokens.size() + stream_.tokens.size() / 4);
  }

  TokenStream run() {
    for (const Token& token : stream_.tokens) {
      note_line(token);
      // Closes brackets that must have been meant to end before the token.
      const bool ends_all = token.kind == TokenKind::EndOfFile;
      if (ends_all || (guesses_ && token.starts_line)) {
        while (!open_.empty() && (ends_all || is_abandoned_by(token))) abandon(token);
      }
      add_line_end(token);
      add(token);
      if (is_too_deep_) break;
    }
    // Ends the stream after a bracket that is too deep: closes all open brackets and marks them as
    // reported.
    if (is_too_deep_) {
      Token end = stream_.tokens.back();
      end.is_reported = true;
      while (!open_.empty()) close_silently(end);
      out_.push_back(end);
    }
    stream_.tokens = std::move(out_);
    return std::move(stream_);
  }

 private:
  struct Open {
    std::uint32_t idx;
    TokenKind kind;
    // The column of the first token on the bracket's line.
    std::uint32_t indent;
    bool may_be_interval;
    bool has_comma = false;
  };

  void note_line(const Token& token) {
    if (!token.starts_line) return;
    const char* begin = token.text.data();
    const char* line = begin;
    const char* first = begin - token.span.begin;
    while (line != first && line[-1] != '\n') --line;
    // A line that starts with a comment has the indent of its first token; that is good enough for
    // comparisons.
    line_indent_ = static_cast<std::uint32_t>(begin - line);
  }

  bool in_statements() const { return open_.empty() || stack_top().kind == TokenKind::LBrace; }
  const Open& stack_top() const { return open_.back(); }

  bool is_abandoned_by(const Token& token) const {
    const bool begins_declaration =
        token.kind == TokenKind::KwImport || token.kind == TokenKind::KwCompressor ||
        token.kind == TokenKind::KwExtern || token.kind == TokenKind::KwFn;
    if (!in_statements()) {
      return begins_declaration || token.kind == TokenKind::KwLet ||
             token.kind == TokenKind::KwWhile || token.kind == TokenKind::KwAssert;
    }
    // This `}` is the first token of its line. It ends an outer line's `{` if its indent is less
    // than that of the innermost one's line and that of an outer one's line.
    if (token.kind == TokenKind::RBrace) {
      if (line_indent_ >= stack_top().indent) return false;
      return std::any_of(open_.begin(), open_.end(), [&](const Open& open) {
        return open.kind == TokenKind::LBrace && open.indent == line_indent_;
      });
    }
    const bool begins_method = is_text(token, "encode") || is_text(token, "decode") ||
                               is_text(token, "finish") || is_text(token, "sync");
    // A method is directly inside the braces of its compressor.
    const bool is_outside = begins_declaration || (begins_method && open_.size() > 1);
    return is_outside && line_indent_ <= stack_top().indent;
  }

  // Reports that the innermost bracket is never closed, and closes it before `next`.
  void abandon(const Token& next) {
    const Open open = open_.back();
    const Token& opener = out_[open.idx];
    auto& diag = sink_.report<DiagKind::UnclosedBracket>(opener.span, opener.text);
    if (const ast::Comment* comment = hiding_comment(opener)) {
      diag.note(comment->span, "this is a comment; " + foreign_note(ForeignPlace::Syntax, "//"));
    }
    // Mistakes inside unclosed parentheses are not reported a second time.
    if (open.kind != TokenKind::LBrace) {
      for (std::size_t i = open.idx; i < out_.size(); ++i) out_[i].is_reported = true;
    }
    close_silently(next);
  }

  // The first comment after the bracket that stands behind code and has a closing bracket in it:
  // `(k // 2)` was probably meant as a division. Looks only once, so that the sweep stays linear.
  const ast::Comment* hiding_comment(const Token& opener) {
    if (std::exchange(has_looked_for_comment_, true)) return nullptr;
    const char* const file = opener.text.data() - opener.span.begin;
    for (const ast::Comment& comment : stream_.comments) {
      const std::string_view text(file + comment.span.begin, comment.span.end - comment.span.begin);
      if (comment.kind != ast::CommentKind::Line || comment.span.begin < opener.span.begin ||
          text.find_first_of(")]}") == std::string_view::npos)
        continue;
      std::uint32_t before = comment.span.begin;
      while (before > 0 && (file[before - 1] == ' ' || file[before - 1] == '\t')) --before;
      if (before > 0 && file[before - 1] != '\n') return &comment;
    }
    return nullptr;
  }

  void close_silently(const Token& next) {
    const Open open = open_.back();
    Token closer = next;
    closer.kind = closer_of(open.kind);
    closer.is_reported = true;
    closer.doc = Token::kNone;
    closer.span.end = closer.span.begin;
    closer.text = closer.text.substr(0, 0);
    pair(closer);
  }

  void pair(Token closer) {
    const Open open = open_.back();
    open_.pop_back();
    closer.partner = open.idx;
    out_[open.idx].partner = static_cast<std::uint32_t>(out_.size());
    if (open.may_be_interval && open.has_comma) {
      out_[open.idx].kind = TokenKind::IntervalOpen;
      closer.kind = TokenKind::IntervalClose;
    }
    out_.push_back(closer);
  }

  void add_line_end(const Token& token) {
    const bool ends_here = token.starts_line || token.kind == TokenKind::EndOfFile;
    if (!ends_here || !in_statements() || out_.empty()) return;
    const Token& last = out_.back();
    if (last.kind == TokenKind::End || continues_line(last.kind)) return;
    if (token.kind == TokenKind::RBrace || token.kind == TokenKind::KwElse) return;
    Token end{.kind = TokenKind::End};
    end.span = {last.span.file, last.span.end, last.span.end};
    end.text = last.text.substr(last.text.size());
    out_.push_back(end);
  }

  void add(const Token& token) {
    if (token.kind == TokenKind::Semicolon && in_statements()) {
      if (!out_.empty() && out_.back().kind == TokenKind::End) return;
      out_.push_back(token);
      out_.back().kind = TokenKind::End;
      return;
    }
    if (token.kind == TokenKind::Comma && !open_.empty()) open_.back().has_comma = true;
    if (token.kind == TokenKind::LParen || token.kind == TokenKind::LBracket ||
        token.kind == TokenKind::LBrace) {
      if (open_.size() == ast::kMaxDepth) {
        sink_.report<DiagKind::TooDeep>(token.span, ast::kMaxDepth);
        is_too_deep_ = true;
        return;
      }
      const auto idx = static_cast<std::uint32_t>(out_.size());
      open_.push_back({idx, token.kind, line_indent_, is_behind_in(token)});
    }
    if (is_closer(token.kind)) return close(token);
    out_.push_back(token);
  }

  bool is_behind_in(const Token& token) const {
    if (token.kind == TokenKind::LBrace || out_.size() < 2) return false;
    return is_text(out_.back(), "in") && ends_operand(out_[out_.size() - 2]);
  }

  bool closes(const Token& closer, const Open& open) const {
    if (closer.kind == closer_of(open.kind)) return true;
    const bool is_interval = open.may_be_interval && open.has_comma;
    return is_interval && closer.kind != TokenKind::RBrace;
  }

  void close(const Token& token) {
    const bool is_closing =
        std::any_of(open_.begin(), open_.end(), [&](const Open& o) { return closes(token, o); });
    if (!is_closing) {
      sink_.report<DiagKind::UnmatchedBracket>(token.span, token.text);
      Token invalid = token;
      invalid.kind = TokenKind::Invalid;
      invalid.is_reported = true;
      out_.push_back(invalid);
      return;
    }
    while (!closes(token, open_.back())) abandon(token);
    pair(token);
  }

  TokenStream stream_;
  DiagSink& sink_;
  bool guesses_;
  std::vector<Token> out_;
  std::vector<Open> open_;
  std::uint32_t line_indent_ = 0;
  bool is_too_deep_ = false;
  bool has_looked_for_comment_ = false;
};

}  // namespace

// If all brackets match, indents do not matter.
TokenStream lay_out(TokenStream raw, DiagSink& sink) {
  DiagSink mismatches;
  TokenStream strict = Layout(raw, mismatches, false).run();
  if (!mismatches.has_errors()) return strict;
  return Layout(std::move(raw), sink, true).run();
}

}  // namespace cinch::dsl
