// pack.h: elements of 1 to 63 bits, packed by a warp into runs of bits. Needs storage.h.

namespace cinch {

// Words of shared memory that a warp needs to pack a row: 128 elements after a shifted start.
static __device__ constexpr u32 stage_words(u32 bits) {
  return 4u * bits + 2u;
}

// Puts the bits of one element into the stage, which must hold zeros there.
CINCH_FN void stage_bits(u32* stage, u32 position, u64 value, u32 bits) {
  const u32 word = position >> 5, shift = position & 31u;
  atomicOr(stage + word, u32(value << shift));
  if (shift + bits > 32u) atomicOr(stage + word + 1, u32(value >> (32u - shift)));
  if (shift + bits > 64u) atomicOr(stage + word + 2, u32(value >> (64u - shift)));
}

// The number of live elements of a row, from every lane's own number.
CINCH_FN u32 row_live(u32 live) {
  return u32(
      __popc(__ballot_sync(kAllLanes, live > 0u)) + __popc(__ballot_sync(kAllLanes, live > 1u)) +
      __popc(__ballot_sync(kAllLanes, live > 2u)) + __popc(__ballot_sync(kAllLanes, live > 3u)));
}

// Stores the first `num_bytes` bytes (at most 4) of a word at any address.
CINCH_FN void store_word(u8* to, u32 word, u32 num_bytes) {
  if (num_bytes >= 4u && (reinterpret_cast<u64>(to) & 3u) == 0) {
    *reinterpret_cast<u32*>(to) = word;
    return;
  }
#pragma unroll
  for (u32 i = 0; i < 4u; ++i) {
    if (i < num_bytes) to[i] = u8(word >> (8u * i));
  }
}

// Joins each lane's run of 4 * Bits bits (1, 2 or 4 bits an element) to words. Each lane of a word
// gets the word.
template <int Bits>
CINCH_FN u32 join_runs(u32 run) {
  constexpr u32 kLanes = 8u / Bits;
  u32 word = run << (4u * Bits * (lane_index() & (kLanes - 1u)));
#pragma unroll
  for (u32 distance = 1; distance < kLanes; distance *= 2) {
    word |= __shfl_xor_sync(kAllLanes, word, int(distance));
  }
  return word;
}
template <class S>
CINCH_FN u32 run_of(const typename S::Compute (&x)[4], u32 live) {
  u32 run = 0;
  CINCH_EACH run |= c < live ? u32(S::encode(x[c])) << (c * S::kBits) : 0u;
  return run;
}

// Transposes squares of units: neighbouring lanes, as many as there are units, hold one row each.
// Unit i of lane l goes to unit l of lane i.
template <u32 Units, u32 UnitBits>
CINCH_FN u32 transpose_units(u32 x) {
#pragma unroll
  for (u32 distance = Units / 2u; distance >= 1u; distance /= 2u) {
    const u32 other = __shfl_xor_sync(kAllLanes, x, int(distance));
    const bool is_late = (lane_index() & distance) != 0u;
    if (distance * UnitBits == 16u) {
      x = __byte_perm(x, other, is_late ? 0x3276u : 0x5410u);
    } else if (distance * UnitBits == 8u) {
      x = __byte_perm(x, other, is_late ? 0x3715u : 0x6240u);
    } else {
      const u32 kept = is_late ? 0xf0f0f0f0u : 0x0f0f0f0fu;
      x = (x & kept) | ((is_late ? other >> 4 : other << 4) & ~kept);
    }
  }
  return x;
}

// Packs this many whole rows from `begin` on, as holds_rows allows, from the runs of run_of.
// Before, a lane has a part of a word of each row; afterwards it has a whole word of one row.
template <class S, u32 Rows>
CINCH_FN void pack_rows(u8* buffer, i64 begin, const u32 (&runs)[Rows]) {
  constexpr u32 kBits = S::kBits, kLanes = 8u / kBits, kRowWords = 4u * kBits;
  constexpr u32 kUnits = Rows < kLanes ? Rows : kLanes;  // rows and lanes of a square
  const u32 lane = lane_index();
  u32* const words = reinterpret_cast<u32*>(buffer + u64(begin) * kBits / 8u);
#pragma unroll
  for (u32 first = 0; first < Rows; first += kUnits) {
    u32 x = 0;
#pragma unroll
    for (u32 i = 0; i < kUnits; ++i) x |= runs[first + i] << (4u * kBits * i);
    x = transpose_units<kUnits, 4u * kBits>(x);
    if (kUnits < kLanes) x <<= 4u * kBits * kUnits * (lane % kLanes / kUnits);
#pragma unroll
    for (u32 distance = kUnits; distance < kLanes; distance *= 2u) {
      x |= __shfl_xor_sync(kAllLanes, x, int(distance));
    }
    if (lane % kLanes < kUnits) words[(first + lane % kUnits) * kRowWords + lane / kLanes] = x;
  }
}

// Packs a row that a few lanes share, of which the first `len` elements exist. The row's bits begin
// and end at words.
template <class S, u32 Lanes>
CINCH_FN void pack_short_row(u8* buffer, i64 begin, u32 len, const typename S::Compute (&x)[4]) {
  constexpr u32 kBits = S::kBits, kWordLanes = 8u / kBits;
  const u32 lane = lane_index() % Lanes;
  const u32 word = join_runs<S::kBits>(run_of<S>(x, live_elems(4u * lane, len)));
  const u32 num_bytes = (len * kBits + 7u) >> 3, first = lane / kWordLanes * 4u;
  u8* const to = buffer + (u64(begin) * kBits >> 3);
  if (lane % kWordLanes == 0u && first < num_bytes) {
    store_word(to + first, word, num_bytes - first);
  }
}

// Packs row `turn` from `first_row_begin` on. Lane l holds elements 4l … 4l + 3 of the row, of
// which `live` exist; live elements are a prefix of the row. Bits before the row's first byte
// boundary belong to an earlier store of the same warp and stay. Bits behind the last element
// become 0. `stage` is this warp's shared memory of stage_words(bits).
template <class S, Access A>
CINCH_FN void pack_four(u8* buffer, i64 first_row_begin, u32 turn, u32 live,
                        const typename S::Compute (&x)[4], u32* stage) {
  constexpr u32 kBits = S::kBits;
  const u32 lane = lane_index();
  if constexpr (A == Access::Whole && kIsNibbles<S::kBits>) {
    constexpr u32 kLanes = 8u / kBits;
    const u32 word = join_runs<S::kBits>(run_of<S>(x, 4u));
    u32* const words = reinterpret_cast<u32*>(buffer + u64(first_row_begin) * kBits / 8u +
                                              turn * (kRowElems * kBits / 8u));
    if (lane % kLanes == 0u) words[lane / kLanes] = word;
    return;
  }
  const u64 first_bit = u64(first_row_begin + i64(turn * kRowElems)) * kBits;
  const u32 phase = u32(first_bit & 7u);
  u8* const to = buffer + (first_bit >> 3);
  const u32 num_live = row_live(live);
  if (num_live == 0u) return;
  const u32 num_bytes = (phase + num_live * kBits + 7u) >> 3;
  if constexpr (kIsNibbles<S::kBits>) {
    if (phase == 0u) {
      const u32 word = join_runs<S::kBits>(run_of<S>(x, live));
      constexpr u32 kLanes = 8u / kBits;
      const u32 first = lane / kLanes * 4u;
      if (lane % kLanes == 0u && first < num_bytes) store_word(to + first, word, num_bytes - first);
      return __syncwarp();
    }
  }
  __syncwarp();
  for (u32 i = lane; i < stage_words(kBits); i += 32u) stage[i] = 0u;
  __syncwarp();
  CINCH_EACH {
    if (c < live) stage_bits(stage, phase + (4u * lane + c) * kBits, u64(S::encode(x[c])), kBits);
  }
  if (lane == 0u && phase != 0u) atomicOr(stage, u32(to[0]) & ((1u << phase) - 1u));
  __syncwarp();
  for (u32 i = lane; 4u * i < num_bytes; i += 32u)
    store_word(to + 4u * i, stage[i], num_bytes - 4u * i);
  __syncwarp();
}

}  // namespace cinch
