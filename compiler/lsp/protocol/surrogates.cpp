// Body of surrogates.h.
#include "compiler/lsp/protocol/surrogates.h"

#include <charconv>
#include <cstdint>
#include <string_view>

namespace cinch::lsp {

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
