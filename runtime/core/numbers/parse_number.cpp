// Numbers in texts; see parse_number.h.
#include "runtime/core/numbers/parse_number.h"

#include <charconv>

namespace cinch {

std::optional<double> parse_number(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  // A sign was removed above; std::from_chars would accept a second one.
  if (text.starts_with('-')) return std::nullopt;
  double value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto format = is_hex ? std::chars_format::hex : std::chars_format::general;
  const auto [stop, error] = std::from_chars(begin, end, value, format);
  if (error != std::errc() || stop != end) return std::nullopt;
  return is_negative ? -value : value;
}

}  // namespace cinch
