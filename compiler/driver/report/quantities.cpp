// Bodies of quantities.h.
#include "compiler/driver/report/quantities.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace cinch::driver {

std::string grouped(std::int64_t number) {
  constexpr std::size_t kFewDigits = 4;
  std::string text = std::to_string(number);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() - first <= kFewDigits) return text;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string three_digits(double number) {
  const double size = std::abs(number);
  if (size >= 99.95) return fmt::format("{:.0f}", number);
  if (size >= 9.995) return fmt::format("{:.1f}", number);
  if (size >= 0.9995 || size == 0) return fmt::format("{:.2f}", number);
  return fmt::format("{:.3g}", number);
}

std::string size_text(double bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return three_digits(bytes) + " " + kUnits[unit];
}

std::string time_text(double seconds) {
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " µs";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

namespace {

std::string noun(bool is_one, std::string_view what) {
  if (is_one) return std::string(what);
  return what.ends_with('y') ? fmt::format("{}ies", what.substr(0, what.size() - 1))
                             : fmt::format("{}s", what);
}

}  // namespace

std::string counted(std::int64_t number, std::string_view what) {
  return grouped(number) + " " + noun(number == 1, what);
}

std::string plainly_counted(std::uint64_t number, std::string_view what) {
  return fmt::format("{} {}", number, noun(number == 1, what));
}

}  // namespace cinch::driver
