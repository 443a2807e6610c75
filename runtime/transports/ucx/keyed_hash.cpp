#include "runtime/transports/ucx/keyed_hash.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace cinch::rt {
namespace {

constexpr std::size_t kShaBlock = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> kShaConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

using ShaState = std::array<std::uint32_t, 8>;

void add_block(ShaState& state, const std::uint8_t* block) {
  std::array<std::uint32_t, 64> words;
  for (std::size_t i = 0; i < 16; ++i) words[i] = big_endian(block + 4 * i);
  for (std::size_t i = 16; i < words.size(); ++i) {
    const std::uint32_t x = words[i - 15], y = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + words[i - 7] +
               (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                ((e & f) ^ (~e & g)) + kShaConstants[i] + words[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const ShaState added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

std::uint64_t little_endian(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

struct SipState {
  std::uint64_t a, b, c, d;
  void mix(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      a += b;
      b = std::rotl(b, 13) ^ a;
      a = std::rotl(a, 32);
      c += d;
      d = std::rotl(d, 16) ^ c;
      a += d;
      d = std::rotl(d, 21) ^ a;
      c += b;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }
  void add(std::uint64_t word) {
    d ^= word;
    mix(2);
    a ^= word;
  }
};

}  // namespace

Digest sha256(std::span<const std::uint8_t> bytes) {
  ShaState state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::uint64_t num_bits = std::uint64_t{8} * bytes.size();
  for (; bytes.size() >= kShaBlock; bytes = bytes.subspan(kShaBlock)) {
    add_block(state, bytes.data());
  }
  // A one bit, zeros, and the length at the end of the last block.
  std::array<std::uint8_t, 2 * kShaBlock> last{};
  std::ranges::copy(bytes, last.begin());
  last[bytes.size()] = 0x80;
  const std::size_t end = bytes.size() + 9 <= kShaBlock ? kShaBlock : 2 * kShaBlock;
  for (std::size_t i = 0; i < 8; ++i) {
    last[end - 1 - i] = static_cast<std::uint8_t>(num_bits >> (8 * i));
  }
  for (std::size_t begin = 0; begin < end; begin += kShaBlock) {
    add_block(state, last.data() + begin);
  }
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

HashedText& HashedText::add(std::string_view text) {
  return add(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

HashedText& HashedText::add(std::span<const std::uint8_t> bytes) {
  add(std::uint64_t{bytes.size()});
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

HashedText& HashedText::add(std::uint64_t number) {
  for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  return *this;
}

Digest keyed_hash(std::span<const std::uint8_t> key, std::span<const std::uint8_t> bytes) {
  std::array<std::uint8_t, kShaBlock> block{};
  if (key.size() > kShaBlock) {
    std::ranges::copy(sha256(key), block.begin());
  } else {
    std::ranges::copy(key, block.begin());
  }
  const auto with_pad = [&](std::uint8_t pad, std::span<const std::uint8_t> text) {
    std::vector<std::uint8_t> padded;
    padded.reserve(kShaBlock + text.size());
    for (const std::uint8_t byte : block) padded.push_back(byte ^ pad);
    padded.insert(padded.end(), text.begin(), text.end());
    return sha256(padded);
  };
  return with_pad(0x5c, with_pad(0x36, bytes));
}

bool are_equal(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  if (a.size() != b.size()) return false;
  std::uint8_t differing = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differing |= a[i] ^ b[i];
  return differing == 0;
}

std::uint64_t sip_hash(const SipKey& key, std::span<const std::uint8_t> bytes) {
  SipState state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  std::uint64_t last = std::uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) state.add(little_endian(bytes.data()));
  for (std::size_t i = 0; i < bytes.size(); ++i) last |= std::uint64_t{bytes[i]} << (8 * i);
  state.add(last);
  state.c ^= 0xff;
  state.mix(4);
  return state.a ^ state.b ^ state.c ^ state.d;
}

SipKey sip_key(const Digest& digest) {
  return {little_endian(digest.data()), little_endian(digest.data() + 8)};
}

Digest random_digest() {
  Digest drawn{};
  std::size_t size = 0;
  while (size < drawn.size()) {
    const ssize_t more = ::getrandom(drawn.data() + size, drawn.size() - size, 0);
    if (more > 0) size += static_cast<std::size_t>(more);
  }
  return drawn;
}

}  // namespace cinch::rt
