// Splitting a text into tokens.
#include "codegen/text/formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace cinch::text {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '.';
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Lexer::fail_at(std::size_t offset, const std::string& message) const {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < offset && i < text_.size(); ++i) {
    column = text_[i] == '\n' ? 1 : column + 1;
    line += text_[i] == '\n';
  }
  throw ParseFailure{fmt::format("line {}, column {}: {}", line, column, message)};
}

void Lexer::fail(const std::string& message) const {
  fail_at(token_.offset, message);
}

Token Lexer::take() {
  Token token = std::move(token_);
  advance();
  return token;
}

bool Lexer::is(std::string_view text) const {
  return (token_.kind == TokenKind::Name || token_.kind == TokenKind::Sign) && token_.text == text;
}

bool Lexer::accept(std::string_view text) {
  if (!is(text)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!accept(text)) fail(fmt::format("expected '{}'", text));
}

std::string_view Lexer::expect_name(const char* what) {
  if (token_.kind != TokenKind::Name) fail(fmt::format("expected {}", what));
  return take().text;
}

std::string Lexer::expect_text(const char* what) {
  if (token_.kind == TokenKind::String) return take().content;
  return std::string(expect_name(what));
}

std::uint64_t Lexer::expect_number(const char* what, std::uint64_t most) {
  if (token_.kind != TokenKind::Number) fail(fmt::format("expected {}", what));
  const std::uint64_t value = integer_bits(*this, token_.text);
  if (value > most) fail(fmt::format("{} is too large", what));
  advance();
  return value;
}

double Lexer::expect_double() {
  const bool is_negative = accept("-");
  double value = 0;
  if (token_.kind == TokenKind::Number) {
    value = double_of(*this, token_.text);
  } else if (is("inf")) {
    value = std::numeric_limits<double>::infinity();
  } else if (is("nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    fail("expected a number");
  }
  advance();
  return is_negative ? -value : value;
}

void Lexer::advance() {
  bool starts_line = false;
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == '/' && text_.substr(next_, 2) == "//") {
      while (next_ < text_.size() && text_[next_] != '\n') ++next_;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      starts_line = starts_line || c == '\n';
      ++next_;
    } else {
      break;
    }
  }
  token_ = Token{};
  token_.offset = next_;
  token_.starts_line = starts_line;
  if (next_ == text_.size()) return;
  const char c = text_[next_];
  if (c == '%') return lex_value();
  if (c == '"') return lex_string();
  if (is_digit(c)) return lex_number();
  std::size_t end = next_ + 1;
  if (is_letter(c)) {
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    token_.kind = TokenKind::Name;
  } else {
    token_.kind = TokenKind::Sign;
  }
  token_.text = text_.substr(next_, end - next_);
  next_ = end;
}

void Lexer::lex_value() {
  std::size_t end = next_ + 1;
  while (end < text_.size() && is_digit(text_[end])) ++end;
  const std::string_view digits = text_.substr(next_ + 1, end - next_ - 1);
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), token_.value);
  if (error != std::errc() || stop != digits.data() + digits.size()) {
    fail_at(next_, "expected a number behind %");
  }
  if (end < text_.size() && text_[end] == '.') {
    const std::size_t begin = ++end;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    token_.content = text_.substr(begin, end - begin);
  }
  token_.kind = TokenKind::Value;
  next_ = end;
}

void Lexer::lex_string() {
  std::size_t at = next_ + 1;
  for (; at < text_.size() && text_[at] != '"'; ++at) {
    if (text_[at] != '\\') {
      token_.content += text_[at];
      continue;
    }
    if (++at == text_.size()) break;
    if (text_[at] == 'x' && at + 2 < text_.size() && hex_digit(text_[at + 1]) >= 0 &&
        hex_digit(text_[at + 2]) >= 0) {
      token_.content += static_cast<char>(hex_digit(text_[at + 1]) * 16 + hex_digit(text_[at + 2]));
      at += 2;
    } else {
      token_.content += text_[at] == 'n' ? '\n' : text_[at];
    }
  }
  if (at >= text_.size()) fail_at(next_, "a string that does not end");
  token_.kind = TokenKind::String;
  next_ = at + 1;
}

// Takes digits, a point, an exponent with its sign, hex digits, a type suffix; the caller decides
// whether they form a number.
void Lexer::lex_number() {
  std::size_t end = next_;
  const bool is_hex = text_.substr(next_, 2) == "0x";
  while (end < text_.size() &&
         (is_name_char(text_[end]) ||
          (!is_hex && (text_[end] == '+' || text_[end] == '-') && text_[end - 1] == 'e'))) {
    ++end;
  }
  token_.kind = TokenKind::Number;
  token_.text = text_.substr(next_, end - next_);
  next_ = end;
}

std::uint64_t integer_bits(const Lexer& lexer, std::string_view text) {
  int base = 10;
  if (text.substr(0, 2) == "0x") {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || stop != text.data() + text.size()) lexer.fail("expected an integer");
  return value;
}

double double_of(const Lexer& lexer, std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) lexer.fail("expected a number");
  return value;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) && std::ranges::all_of(name, is_name_char);
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace cinch::text
