// Reads bytes of a session or a payload as values.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cinch::testing {

template <class T>
std::vector<T> values_of(std::span<const std::uint8_t> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  // An empty range may have a null address, which memcpy rejects.
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace cinch::testing
