#include "compiler/lsp/protocol/json.h"

#include <algorithm>
#include <filesystem>

#include "dsl/diag/render.h"

namespace cinch::lsp {

namespace {

bool is_line_end(std::string_view text, std::size_t at) {
  if (text[at] == '\n') return true;
  return text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n');
}

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
    if (is_line_end(text, i)) line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
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

bool has_scheme(std::string_view text) {
  const std::size_t colon = text.find(':');
  // `untitled:Untitled-1`; a path with a colon begins with a slash or a dot.
  return colon != std::string_view::npos && colon > 1 && text.find('/') > colon;
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
  if (has_scheme(path)) return path;
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  return std::string(kFileScheme) + dsl::to_uri(error ? path : absolute);
}

namespace {

std::uint32_t count_of(const Json& json) {
  const auto value = json.get<std::int64_t>();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, UINT32_MAX));
}

}  // namespace

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

}  // namespace cinch::lsp
