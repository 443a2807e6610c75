// Bodies of text_layout.h.
#include "compiler/driver/report/text_layout.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace cinch::driver {

std::size_t num_characters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t length = num_characters(text);
  return text + std::string(width > length ? width - length : 0, ' ');
}

std::string shortened(const std::string& text, std::size_t width) {
  if (num_characters(text) <= width) return text;
  std::istringstream words(text);
  std::string kept;
  for (std::string word; words >> word;) {
    std::string longer = kept;
    longer.append(kept.empty() ? "" : " ").append(word);
    if (num_characters(longer) + 2 > width) break;
    kept = std::move(longer);
  }
  while (kept.ends_with(',') || kept.ends_with(':') || kept.ends_with(';')) kept.pop_back();
  return kept.empty() ? "…" : kept + " …";
}

std::string shortened_in_middle(const std::string& text, std::size_t width) {
  const std::size_t length = num_characters(text);
  if (length <= width) return text;
  const std::size_t last = width / 2, first = width - std::min(width, last + 1);
  std::string kept;
  std::size_t at = 0;  // the character that `c` belongs to, from 1 on
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    if (begins && ++at == first + 1) kept += "…";
    if (at <= first || at > length - last) kept += c;
  }
  return kept;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::istringstream words(text);
  std::string lines;
  std::size_t at = indent;  // the end of the current line
  for (std::string word; words >> word;) {
    const std::size_t length = num_characters(word);
    if (at > indent && at + 1 + length > width) {
      lines += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      lines += " ";
      ++at;
    }
    lines += word;
    at += length;
  }
  return lines;
}

}  // namespace cinch::driver
