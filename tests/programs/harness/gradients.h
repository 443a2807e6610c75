// Gradients for tests: kinds of data that compressors meet, the same from the same seed on every
// machine.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cinch::testing {

enum class DataKind : std::uint8_t {
  Normal,       // standard normal
  HeavyTailed,  // magnitudes over forty binary orders, both signs
  Sparse,       // 19 of 20 are zero
  Constant,     // one value throughout
  Zeros,        // +0 and -0
  Subnormal,    // below the smallest normal f32
  NaN,          // normal, with one NaN
  Infinity,     // normal, with one infinity
};
inline constexpr DataKind kAllDataKinds[] = {
    DataKind::Normal, DataKind::HeavyTailed, DataKind::Sparse, DataKind::Constant,
    DataKind::Zeros,  DataKind::Subnormal,   DataKind::NaN,    DataKind::Infinity};

const char* data_kind_name(DataKind kind);

std::vector<float> make_gradient(DataKind kind, std::int64_t num_elems, std::uint64_t seed);

// Reads bytes of a session or a payload as values.

template <class T>
std::vector<T> values_of(std::span<const std::uint8_t> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  // An empty range may have a null address, which memcpy rejects.
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace cinch::testing
