#include <algorithm>
#include <charconv>
#include <filesystem>

#include "compiler/lsp/protocol/json.h"
#include "dsl/diag/render.h"

namespace cinch::lsp {
namespace {

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
    const bool is_lone_return = text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n');
    if (text[i] == '\n' || is_lone_return)
      line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
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

namespace {

constexpr std::string_view kFileScheme = "file://";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::uint32_t count_of(const Json& json) {
  const auto value = json.get<std::int64_t>();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, UINT32_MAX));
}

}  // namespace

std::string path_of_uri(std::string_view uri) {
  if (!uri.starts_with(kFileScheme)) return std::string(uri);
  uri.remove_prefix(kFileScheme.size());
  // A host before the path: `file://localhost/home`.
  if (const std::size_t slash = uri.find('/'); slash != std::string_view::npos) {
    uri.remove_prefix(slash);
  }
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    const bool is_escape = uri[i] == '%' && i + 2 < uri.size() && hex_value(uri[i + 1]) >= 0 &&
                           hex_value(uri[i + 2]) >= 0;
    if (is_escape) {
      path += static_cast<char>(hex_value(uri[i + 1]) * 16 + hex_value(uri[i + 2]));
      i += 2;
    } else {
      path += uri[i];
    }
  }
  return std::filesystem::path(path).lexically_normal().string();
}

std::string uri_of_path(const std::string& path) {
  const std::size_t colon = path.find(':');
  // `untitled:Untitled-1`; a path with a colon begins with a slash or a dot.
  if (colon != std::string::npos && colon > 1 && path.find('/') > colon) return path;
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  return std::string(kFileScheme) + dsl::to_uri(error ? path : absolute);
}

Json to_json(Position position) {
  return {{"line", position.line}, {"character", position.character}};
}

Position position_of(const Json& json) {
  return {count_of(json.at("line")), count_of(json.at("character"))};
}

Json range_json(const TextPositions& positions, dsl::Span span) {
  return {{"start", to_json(positions.position(span.begin))},
          {"end", to_json(positions.position(span.end))}};
}

Json location_json(const dsl::SourceBuffer& source, dsl::Span span) {
  return {{"uri", uri_of_path(source.name())},
          {"range", range_json(TextPositions(source.text()), span)}};
}

Json markdown(const std::string& text) {
  return {{"kind", "markdown"}, {"value", text}};
}

namespace {

constexpr std::size_t kEscape = 6;  // `\uXXXX`
constexpr std::string_view kReplacementEscape = "\\ufffd", kReplacement = "\xEF\xBF\xBD";

// The unit of an escape at this place; 0 if there is none.
std::uint32_t escaped_unit(std::string_view text, std::size_t at) {
  if (text.size() < at + kEscape || text.substr(at, 2) != "\\u") return 0;
  std::uint32_t unit = 0;
  const char* const end = text.data() + at + kEscape;
  const auto [stop, error] = std::from_chars(text.data() + at + 2, end, unit, 16);
  return error == std::errc() && stop == end ? unit : 0;
}

bool is_first_half(std::uint32_t unit) {
  return unit >= 0xd800u && unit < 0xdc00u;
}

bool is_second_half(std::uint32_t unit) {
  return unit >= 0xdc00u && unit < 0xe000u;
}

bool is_encoded_half(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  return text.size() >= at + kReplacement.size() && byte(0) == 0xedu && byte(1) >= 0xa0u &&
         byte(1) < 0xc0u && byte(2) >= 0x80u && byte(2) < 0xc0u;
}

}  // namespace

std::string without_lone_surrogates(std::string json) {
  for (std::size_t at = 0; at < json.size();) {
    if (is_encoded_half(json, at)) {
      json.replace(at, kReplacement.size(), kReplacement);
    } else if (json[at] != '\\') {
      ++at;
    } else if (const std::uint32_t unit = escaped_unit(json, at); unit == 0) {
      at += 2;  // also skips the second of `\\`, after which no escape begins
    } else if (is_first_half(unit) && is_second_half(escaped_unit(json, at + kEscape))) {
      at += 2 * kEscape;
    } else {
      if (is_first_half(unit) || is_second_half(unit))
        json.replace(at, kEscape, kReplacementEscape);
      at += kEscape;
    }
  }
  return json;
}

}  // namespace cinch::lsp
