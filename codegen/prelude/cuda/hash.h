// hash.h: the check word of a payload's header and counts (docs/payload.md): the low half of
// XXH3-128 with seed 0, for inputs of 60 to 128 bytes that are whole words. Reads the words where
// the payload has them. Constants and steps are those of the algorithm's specification.

namespace cinch {

constexpr u64 kXxhPrime1 = 0x9E3779B185EBCA87ull;

// Bytes 0 to 127 of the specification's default secret, as little-endian words.
static __device__ __forceinline__ constexpr u64 xxh_secret(u32 index) {
  constexpr u64 kWords[16] = {
      0xbe4ba423396cfeb8ull, 0x1cad21f72c81017cull, 0xdb979083e96dd4deull, 0x1f67b3b7a4a44072ull,
      0x78e5c0cc4ee679cbull, 0x2172ffcc7dd05a82ull, 0x8e2443f7744608b8ull, 0x4c263a81e69035e0ull,
      0xcb00c391bb52283cull, 0xa32e531b8b65d088ull, 0x4ef90da297486471ull, 0xd8acdea946ef1938ull,
      0x3f349ce33f76faa8ull, 0x1d4f0bc7c7bbdcf9ull, 0x3159b4cd4be0518aull, 0x647378d9c97e9fc8ull,
  };
  return kWords[index];
}

CINCH_FN u64 xxh_fold(u64 a, u64 b) {
  return (a * b) ^ __umul64hi(a, b);
}

// The payload's words without the fourth, which is the check word.
CINCH_FN u32 framed_word(const u8* payload, u32 index) {
  return reinterpret_cast<const u32*>(payload)[index < 3u ? index : index + 1u];
}

// Words of the input at a byte offset, a multiple of 4.
CINCH_FN u64 xxh_read(const u8* payload, u32 offset) {
  return u64(framed_word(payload, offset / 4u)) | u64(framed_word(payload, offset / 4u + 1u)) << 32;
}

struct XxhSum {
  u64 low, high;
};

CINCH_FN u64 xxh_mix(const u8* payload, u32 offset, u32 secret) {
  return xxh_fold(xxh_read(payload, offset) ^ xxh_secret(secret),
                  xxh_read(payload, offset + 8u) ^ xxh_secret(secret + 1u));
}

// Mixes 16 bytes from the front and 16 from the back. `secret` counts words.
CINCH_FN void xxh_take(XxhSum& sum, const u8* payload, u32 front, u32 back, u32 secret) {
  sum.low += xxh_mix(payload, front, secret);
  sum.low ^= xxh_read(payload, back) + xxh_read(payload, back + 8u);
  sum.high += xxh_mix(payload, back, secret + 2u);
  sum.high ^= xxh_read(payload, front) + xxh_read(payload, front + 8u);
}

// `num_words`: 15 of the header, and the counts. A function of its own, because both sealing and
// opening a payload call it.
static __device__ __noinline__ u32 check_word(const u8* payload, u32 num_words) {
  const u32 num_bytes = 4u * num_words;
  XxhSum sum = {u64(num_bytes) * kXxhPrime1, 0u};
#pragma unroll
  for (u32 turn = 4; turn-- > 0u;) {
    if (num_bytes > 32u * turn) {
      xxh_take(sum, payload, 16u * turn, num_bytes - 16u * (turn + 1u), 4u * turn);
    }
  }
  u64 hash = sum.low + sum.high;
  hash ^= hash >> 37;
  hash *= 0x165667919E3779F9ull;
  return u32(hash ^ hash >> 32);
}

}  // namespace cinch
