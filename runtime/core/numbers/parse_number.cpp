// Counts in texts; see parse_number.h. A count is digits * 10^tens * 2^twos, computed exactly,
// without doubles.
#include "runtime/core/numbers/parse_number.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

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

namespace {

using CountState = ParsedCount::State;

struct CountSuffix {
  std::string_view text;
  int tens, twos;
};

constexpr CountSuffix kCountSuffixes[] = {
    {"", 0, 0},    {"k", 3, 0},   {"K", 3, 0},   {"M", 6, 0},   {"G", 9, 0},  {"T", 12, 0},
    {"Ki", 0, 10}, {"ki", 0, 10}, {"Mi", 0, 20}, {"Gi", 0, 30}, {"Ti", 0, 40}};

// Larger exponents do not matter: the number is 0, too large or a fraction.
constexpr int kLargestExponent = 100000;

struct Decimal {
  std::string digits;  // no zeros at either end; empty: zero
  int tens = 0, twos = 0;
};

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  return digits;
}

// Removes an exponent such as "e6" from the front of `text` and returns it; 0 if there is none.
int take_exponent(std::string_view& text) {
  if (!text.starts_with('e') && !text.starts_with('E')) return 0;
  std::string_view rest = text.substr(1);
  const bool is_negative = rest.starts_with('-');
  if (is_negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::string_view digits = take_digits(rest);
  if (digits.empty()) return 0;
  text = rest;
  int value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || value > kLargestExponent) value = kLargestExponent;
  return is_negative ? -value : value;
}

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal number;
  number.digits = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string_view behind = take_digits(text);
    number.digits += behind;
    number.tens -= static_cast<int>(std::min<std::size_t>(behind.size(), kLargestExponent));
  }
  if (number.digits.empty()) return std::nullopt;
  number.tens += take_exponent(text);
  const auto* const suffix = std::ranges::find(kCountSuffixes, text, &CountSuffix::text);
  if (suffix == std::end(kCountSuffixes)) return std::nullopt;
  number.tens += suffix->tens;
  number.twos += suffix->twos;
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  while (number.digits.ends_with('0')) {
    number.digits.pop_back();
    ++number.tens;
  }
  return number;
}

constexpr std::uint64_t kLargestCount = std::numeric_limits<std::uint64_t>::max();

ParsedCount evaluate(Decimal number) {
  if (number.digits.empty()) return {CountState::Whole};
  const CountState too_long = number.tens < 0 ? CountState::Fraction : CountState::TooLarge;
  std::uint64_t value = 0;
  const char* const end = number.digits.data() + number.digits.size();
  if (std::from_chars(number.digits.data(), end, value).ec != std::errc()) return {too_long};
  for (; number.tens < 0; ++number.tens) {
    const bool has_two = number.twos > 0 || value % 2 == 0;
    if (value % 5 != 0 || !has_two) return {CountState::Fraction};
    value /= 5;
    if (number.twos > 0) {
      --number.twos;
    } else {
      value /= 2;
    }
  }
  for (; number.tens > 0; --number.tens) {
    if (value > kLargestCount / 10) return {CountState::TooLarge};
    value *= 10;
  }
  if (value > kLargestCount >> number.twos) return {CountState::TooLarge};
  return {CountState::Whole, false, value << number.twos};
}

ParsedCount read_hexadecimal(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const begin = digits.data();
  const char* const end = begin + digits.size();
  const auto [stop, error] = std::from_chars(begin, end, value, 16);
  if (stop != end || digits.empty()) return {};
  if (error != std::errc()) return {CountState::TooLarge};
  return {CountState::Whole, false, value};
}

}  // namespace

ParsedCount parse_count(std::string_view text, std::string_view unit) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  ParsedCount count;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    count = read_hexadecimal(text.substr(2));
  } else {
    if (text.ends_with(unit)) text.remove_suffix(unit.size());
    if (const std::optional<Decimal> number = read_decimal(text)) count = evaluate(*number);
  }
  count.is_negative = is_negative && count.state != CountState::NoNumber;
  return count;
}

}  // namespace cinch
