// Numbers in texts: what users bind to parameters, and what images hold.
#pragma once

#include <optional>
#include <string_view>

namespace cinch {

/// `text` as a number, all of it: decimal, hexadecimal ("0x1.8p-3"), "inf" or "nan". A point is the
/// decimal point, whatever the process's locale says. Nothing where it is no number, or one that a
/// double does not hold.
std::optional<double> parse_number(std::string_view text);

}  // namespace cinch
