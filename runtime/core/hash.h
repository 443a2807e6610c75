// A small interface to xxHash (XXH3), for fingerprints of programs and keys of caches. The same
// bytes give the same hash on every machine; values are hashed in little endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cinch {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

std::uint64_t hash64(const void* data, std::size_t size_bytes, std::uint64_t seed = 0);
inline std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0) {
  return hash64(text.data(), text.size(), seed);
}
Hash128 hash128(const void* data, std::size_t size_bytes, std::uint64_t seed = 0);
inline Hash128 hash128(std::string_view text, std::uint64_t seed = 0) {
  return hash128(text.data(), text.size(), seed);
}
/// 16 or 32 lower-case hexadecimal digits, the most significant first.
std::string to_hex(std::uint64_t hash);
std::string to_hex(const Hash128& hash);

/// A hash of several parts. Strings are hashed with their length, so that ("ab", "c") and ("a",
/// "bc") differ.
class Hasher {
 public:
  Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  Hasher& add_bytes(const void* data, std::size_t size_bytes);
  Hasher& add(std::string_view text);
  Hasher& add(std::uint64_t value);
  std::uint64_t finish64() const;
  Hash128 finish128() const;

 private:
  // Room for XXH3's state, whose type only hash.cpp knows.
  static constexpr std::size_t kStateBytes = 576, kStateAlignment = 64;
  alignas(kStateAlignment) std::array<std::byte, kStateBytes> state_;
};

}  // namespace cinch
