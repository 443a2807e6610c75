// Parses numbers in texts: values that users bind to parameters, and numbers in images.
#pragma once

#include <optional>
#include <string_view>

namespace cinch {

/// Parses all of `text` as a number: decimal, hexadecimal ("0x1.8p-3"), "inf" or "nan". A point is
/// the decimal point in every locale. Nothing if it is not a number, or exceeds a double.
std::optional<double> parse_number(std::string_view text);

}  // namespace cinch
