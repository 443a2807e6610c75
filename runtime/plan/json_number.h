// Numbers in JSON files that are untrusted.
#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

namespace cinch::rt {

/// A whole number that fits T, without truncation or rounding. Throws std::invalid_argument.
template <typename T>
T to_whole_number(const nlohmann::json& value, const char* what) {
  bool fits = false;
  if (value.is_number_unsigned()) {
    fits = value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  } else if (std::is_signed_v<T> && value.is_number_integer()) {
    fits = value.get<std::int64_t>() >= static_cast<std::int64_t>(std::numeric_limits<T>::min());
  }
  if (!fits) throw std::invalid_argument(std::string(what) + ": no such number: " + value.dump());
  return value.get<T>();
}

/// The entry `key` of an object as such a number. Also throws json's own exceptions.
template <typename T>
T whole_number(const nlohmann::json& from, const char* key) {
  return to_whole_number<T>(from.at(key), key);
}

}  // namespace cinch::rt
