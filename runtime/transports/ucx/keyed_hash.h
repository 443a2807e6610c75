// Keyed hashes, by which ranks prove to each other that they know the same secret without sending
// it: HMAC-SHA256 (RFC 2104, FIPS 180-4) at the rendezvous, and SipHash-2-4 (Aumasson and
// Bernstein, 2012) for the header of each message.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace cinch::rt {

using Digest = std::array<std::uint8_t, 32>;
using SipKey = std::array<std::uint64_t, 2>;

Digest sha256(std::span<const std::uint8_t> bytes);

/// A text to hash. Each part is hashed with its length.
class HashedText {
 public:
  explicit HashedText(std::string_view label) { add(label); }
  HashedText& add(std::string_view text);
  HashedText& add(std::span<const std::uint8_t> bytes);
  HashedText& add(std::uint64_t number);
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Takes a key of any length.
Digest keyed_hash(std::span<const std::uint8_t> key, std::span<const std::uint8_t> bytes);
inline Digest keyed_hash(std::string_view key, const HashedText& text) {
  return keyed_hash({reinterpret_cast<const std::uint8_t*>(key.data()), key.size()}, text.bytes());
}
inline Digest keyed_hash(const Digest& key, const HashedText& text) {
  return keyed_hash(std::span<const std::uint8_t>(key), text.bytes());
}

/// Compares in constant time.
bool are_equal(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

std::uint64_t sip_hash(const SipKey& key, std::span<const std::uint8_t> bytes);
/// Takes the first 16 bytes.
SipKey sip_key(const Digest& digest);

/// Unpredictable bytes from the operating system.
Digest random_digest();

}  // namespace cinch::rt
