// xxHash is header-only here: its code lives in this file alone.
#define XXH_INLINE_ALL
#include "runtime/core/hash.h"

#include <xxhash.h>

#include <new>

namespace cinch {

static Hash128 from_xxh(XXH128_hash_t hash) {
  return {hash.low64, hash.high64};
}

std::uint64_t hash64(const void* data, std::size_t size_bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

Hash128 hash128(const void* data, std::size_t size_bytes, std::uint64_t seed) {
  return from_xxh(XXH3_128bits_withSeed(data, size_bytes, seed));
}

std::string to_hex(std::uint64_t hash) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, hash >>= 4) {
    text[static_cast<std::size_t>(i)] = "0123456789abcdef"[hash & 15];
  }
  return text;
}

std::string to_hex(const Hash128& hash) {
  return to_hex(hash.high) + to_hex(hash.low);
}

Hasher::Hasher() {
  static_assert(sizeof(XXH3_state_t) <= kStateBytes && alignof(XXH3_state_t) <= kStateAlignment);
  XXH3_128bits_reset(new (state_.data()) XXH3_state_t);
}

Hasher& Hasher::add_bytes(const void* data, std::size_t size_bytes) {
  XXH3_128bits_update(std::launder(reinterpret_cast<XXH3_state_t*>(state_.data())), data,
                      size_bytes);
  return *this;
}

Hasher& Hasher::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  return add_bytes(text.data(), text.size());
}

Hasher& Hasher::add(std::uint64_t value) {
  unsigned char bytes[8];
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(value);
    value >>= 8;
  }
  return add_bytes(bytes, sizeof bytes);
}

std::uint64_t Hasher::finish64() const {
  return finish128().low;
}
Hash128 Hasher::finish128() const {
  return from_xxh(
      XXH3_128bits_digest(std::launder(reinterpret_cast<const XXH3_state_t*>(state_.data()))));
}

}  // namespace cinch
