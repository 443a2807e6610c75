#include "codegen/kir/text/text_lexer.h"

#include <charconv>

namespace cinch::kir {
namespace {
bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}
}  // namespace

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '/' && text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r') {
      line_ += c == '\n';
      ++at_;
    } else {
      return;
    }
  }
}

void Lexer::lex_string() {
  ++at_;
  token_.kind = TokenKind::String;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      ++at_;
      token_.text += text_[at_] == 'n' ? '\n' : text_[at_];
    } else {
      token_.text += text_[at_];
    }
    ++at_;
  }
  if (at_ >= text_.size() || text_[at_] != '"') return fail("a string without an end");
  ++at_;
}

void Lexer::next() {
  skip_blanks();
  token_ = {TokenKind::End, {}, line_};
  if (failed() || at_ >= text_.size()) return;
  if (text_[at_] == '"') return lex_string();
  const std::size_t begin = at_;
  if (!is_word_char(text_[at_])) {
    ++at_;
    token_.kind = TokenKind::Mark;
  } else {
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    token_.kind = TokenKind::Word;
  }
  token_.text = text_.substr(begin, at_ - begin);
}

Token Lexer::take() {
  Token token = std::move(token_);
  next();
  return token;
}

bool Lexer::accept(char mark) {
  if (!is_mark(mark)) return false;
  next();
  return true;
}

bool Lexer::accept(std::string_view word) {
  if (!is_word(word)) return false;
  next();
  return true;
}

void Lexer::expect(char mark) {
  if (!accept(mark)) fail(std::string("expected '") + mark + "', found '" + token_.text + "'");
}

void Lexer::expect(std::string_view word) {
  if (!accept(word)) fail("expected " + std::string(word) + ", found '" + token_.text + "'");
}

std::string Lexer::expect_word(std::string_view what) {
  if (token_.kind == TokenKind::Word) return take().text;
  fail("expected " + std::string(what) + ", found '" + token_.text + "'");
  return {};
}

std::string Lexer::expect_string() {
  if (token_.kind == TokenKind::String) return take().text;
  fail("expected a string, found '" + token_.text + "'");
  return {};
}

std::uint64_t Lexer::expect_number(std::uint64_t max) {
  const std::string word = expect_word("a number");
  const std::optional<std::uint64_t> value = parse_number(word);
  if (!value || *value > max) {
    fail("expected a number up to " + std::to_string(max) + ", found '" + word + "'");
    return 0;
  }
  return *value;
}

void Lexer::fail(std::string message) {
  if (!failed()) error_ = "line " + std::to_string(token_.line) + ": " + std::move(message);
  token_ = {TokenKind::End, {}, line_};
  at_ = text_.size();
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace cinch::kir
