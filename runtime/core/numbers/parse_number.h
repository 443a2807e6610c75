// Parses numbers in texts: values that users bind to parameters, and numbers in images.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cinch {

/// Parses all of `text` as a number: decimal, hexadecimal ("0x1.8p-3"), "inf" or "nan". A point is
/// the decimal point in every locale. Nothing if it is not a number, or exceeds a double.
std::optional<double> parse_number(std::string_view text);

// Whole numbers as people write them: counts and sizes on the command line and in the environment.

struct ParsedCount {
  enum class State : std::uint8_t {
    Whole,
    /// A number, such as 1.5, that is not whole.
    Fraction,
    /// Whole, but its magnitude needs more than 64 bits.
    TooLarge,
    NoNumber,
  };
  State state = State::NoNumber;
  bool is_negative = false;
  /// For a whole number; else 0.
  std::uint64_t magnitude = 0;
};

/// Parses all of `text`: "4096", "-3", "0x10", "1e6", "2.5e3". A suffix multiplies: k, M, G and T
/// by powers of 1000, Ki, Mi, Gi and Ti by powers of 1024. `unit` may follow: with "B", "64KiB" is
/// 65536.
ParsedCount parse_count(std::string_view text, std::string_view unit = "");

}  // namespace cinch
