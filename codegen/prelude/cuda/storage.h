// storage.h: elements as buffers hold them and as kernels compute with them. Needs warp.h.
//
// A Stored<Kind, Bits, StorageBits> is one dtype in one layout. Whole elements (8, 16, 32, 64 bits)
// are loaded and stored four at a time where the address allows; other widths are runs of bits,
// least significant first, with no padding.

namespace cinch {

enum class Kind { Bool, UInt, Int, F16, BF16, F8E4M3, F8E5M2, F32, F64 };

template <int Bits>
struct RawOf {
  using Type = u64;
};
template <>
struct RawOf<8> {
  using Type = u8;
};
template <>
struct RawOf<16> {
  using Type = u16;
};
template <>
struct RawOf<32> {
  using Type = u32;
};

template <Kind K, int Bits, int StorageBits>
struct Stored {
  static constexpr int kBits = StorageBits;
  static constexpr bool kIsWhole =
      StorageBits == 8 || StorageBits == 16 || StorageBits == 32 || StorageBits == 64;
  // What one element's bits travel in: runs of bits use u64.
  using Raw = typename RawOf<StorageBits>::Type;

  static __device__ __forceinline__ auto decode(Raw raw) {
    if constexpr (K == Kind::Bool) {
      return raw != 0;
    } else if constexpr (K == Kind::UInt) {
      if constexpr (Bits < 32) {
        return i32(u32(raw) & ((1u << Bits) - 1u));
      } else if constexpr (Bits == 32) {
        return u32(raw);
      } else {
        return lang::wrap_int(u64(raw), Bits);
      }
    } else if constexpr (K == Kind::Int) {
      if constexpr (Bits <= 32) {
        return lang::wrap_int(i32(u32(raw)), Bits);
      } else {
        return lang::wrap_int(i64(u64(raw)), Bits);
      }
    } else if constexpr (K == Kind::F16) {
      return lang::from_f16(u16(raw));
    } else if constexpr (K == Kind::BF16) {
      return lang::from_bf16(u16(raw));
    } else if constexpr (K == Kind::F8E4M3) {
      return lang::from_f8e4m3(u8(raw));
    } else if constexpr (K == Kind::F8E5M2) {
      return lang::from_f8e5m2(u8(raw));
    } else if constexpr (K == Kind::F32) {
      return lang::f32_of_bits(u32(raw));
    } else {
      return lang::f64_of_bits(u64(raw));
    }
  }

  using Compute = decltype(decode(Raw(0)));

  // Floats become canonical NaNs; integers are within their width already.
  static __device__ __forceinline__ Raw encode(Compute x) {
    if constexpr (K == Kind::Bool) {
      return Raw(x ? 1 : 0);
    } else if constexpr (K == Kind::UInt || K == Kind::Int) {
      if constexpr (kIsWhole) {
        return Raw(x);
      } else {
        return Raw(u64(x) & (~0ull >> (64 - StorageBits)));
      }
    } else if constexpr (K == Kind::F16) {
      return Raw(lang::to_f16(x));
    } else if constexpr (K == Kind::BF16) {
      return Raw(lang::to_bf16(x));
    } else if constexpr (K == Kind::F8E4M3) {
      return Raw(lang::to_f8e4m3(x));
    } else if constexpr (K == Kind::F8E5M2) {
      return Raw(lang::to_f8e5m2(x));
    } else {
      return Raw(lang::bits_of(lang::canonical(x)));
    }
  }
};

// `bits` bits (at most Most) from a bit position on: touches only bytes that hold some of them.
template <int Most>
CINCH_FN u64 read_bits(const u8* bytes, u64 position, u32 bits) {
  const u64 first = position >> 3;
  const u32 shift = u32(position & 7u);
  const u32 count = bits == 0u ? 0u : (shift + bits + 7u) >> 3;
  u64 low = 0, high = 0;
#pragma unroll
  for (u32 i = 0; i < (Most + 14) / 8; ++i) {
    if (i < count) {
      const u64 byte = bytes[first + i];
      if (i < 8) {
        low |= byte << (8u * i);
      } else {
        high = byte;
      }
    }
  }
  u64 value = low >> shift;
  if (Most + 7 > 64 && shift != 0) value |= high << (64u - shift);
  return bits == 0u ? 0u : value & (~0ull >> (64u - bits));
}

template <class S>
CINCH_FN auto load_one(const u8* buffer, i64 index) {
  if constexpr (S::kIsWhole) {
    return S::decode(reinterpret_cast<const typename S::Raw*>(buffer)[index]);
  } else {
    return S::decode(read_bits<S::kBits>(buffer, u64(index) * S::kBits, u32(S::kBits)));
  }
}

// Whole elements only.
template <class S>
CINCH_FN void store_one(u8* buffer, i64 index, typename S::Compute x) {
  reinterpret_cast<typename S::Raw*>(buffer)[index] = S::encode(x);
}

// Four whole elements travel as one or two of these.
template <class Raw>
constexpr int kSpanElems = sizeof(Raw) == 8 ? 2 : 4;
template <class Raw>
using Span = Pack<Raw, kSpanElems<Raw>>;

// Four elements of so many bits lie within a word.
template <int Bits>
static __device__ constexpr bool kIsNibbles = Bits == 1 || Bits == 2 || Bits == 4;

// Can rows of four elements for each lane be moved from `index` on as Access::Whole?
template <class S>
CINCH_FN bool holds_rows(const u8* buffer, i64 index) {
  if constexpr (S::kIsWhole) {
    using Raw = typename S::Raw;
    const u64 at = reinterpret_cast<u64>(reinterpret_cast<const Raw*>(buffer) + index);
    return (at & (sizeof(Span<Raw>) - 1)) == 0;
  } else if constexpr (kIsNibbles<S::kBits>) {
    // Rows make whole words, at addresses of words.
    const u64 first_bit = u64(index) * S::kBits;
    return (first_bit & 7u) == 0u && ((reinterpret_cast<u64>(buffer) + first_bit / 8u) & 3u) == 0u;
  } else {
    return true;
  }
}

template <class Raw>
struct Quad {
  Raw at[4];
};
#if defined(CINCH_LANG_PORTABLE_ONLY)
template <class Raw>
CINCH_FN Quad<Raw> load_span(const Raw* at) {
  constexpr int kElems = kSpanElems<Raw>;
  Quad<Raw> quad;
#pragma unroll
  for (int part = 0; part < 4 / kElems; ++part) {
    const Span<Raw> span = reinterpret_cast<const Span<Raw>*>(at)[part];
#pragma unroll
    for (int i = 0; i < kElems; ++i) quad.at[part * kElems + i] = span.at[i];
  }
  return quad;
}
template <class Raw>
CINCH_FN void store_span(Raw* at, const Quad<Raw>& quad) {
  constexpr int kElems = kSpanElems<Raw>;
#pragma unroll
  for (int part = 0; part < 4 / kElems; ++part) {
    Span<Raw> span;
#pragma unroll
    for (int i = 0; i < kElems; ++i) span.at[i] = quad.at[part * kElems + i];
    reinterpret_cast<Span<Raw>*>(at)[part] = span;
  }
}
#else
// By name: compilers make several narrow accesses of some wide ones.
CINCH_FN Quad<u64> load_span(const u64* at) {
  Quad<u64> x;
  asm volatile("ld.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(x.at[0]), "=l"(x.at[1])
               : "l"(at)
               : "memory");
  asm volatile("ld.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(x.at[2]), "=l"(x.at[3])
               : "l"(at + 2)
               : "memory");
  return x;
}
CINCH_FN Quad<u32> load_span(const u32* at) {
  Quad<u32> x;
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.at[0]), "=r"(x.at[1]), "=r"(x.at[2]), "=r"(x.at[3])
               : "l"(at)
               : "memory");
  return x;
}
CINCH_FN Quad<u16> load_span(const u16* at) {
  u32 low, high;
  asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(at) : "memory");
  return {{u16(low), u16(low >> 16), u16(high), u16(high >> 16)}};
}
CINCH_FN Quad<u8> load_span(const u8* at) {
  u32 x;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  return {{u8(x), u8(x >> 8), u8(x >> 16), u8(x >> 24)}};
}
CINCH_FN void store_span(u64* at, const Quad<u64>& x) {
  asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(at), "l"(x.at[0]), "l"(x.at[1]) : "memory");
  asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(at + 2), "l"(x.at[2]), "l"(x.at[3])
               : "memory");
}
CINCH_FN void store_span(u32* at, const Quad<u32>& x) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(x.at[0]), "r"(x.at[1]),
               "r"(x.at[2]), "r"(x.at[3])
               : "memory");
}
CINCH_FN void store_span(u16* at, const Quad<u16>& x) {
  const u32 low = x.at[0] | u32(x.at[1]) << 16, high = x.at[2] | u32(x.at[3]) << 16;
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(low), "r"(high) : "memory");
}
CINCH_FN void store_span(u8* at, const Quad<u8>& x) {
  const u32 low = x.at[0] | u32(x.at[1]) << 8, high = x.at[2] | u32(x.at[3]) << 8;
  asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(low | high << 16) : "memory");
}
#endif

// How a lane's four neighbours are moved.
enum class Access {
  Whole,  // all are live, and holds_rows() has said yes
  Any     // at once where that can be done, else one by one
};

// One by one, where there is a row that is not whole.
template <class Raw>
CINCH_FN Quad<Raw> load_part(const Raw* at, u32 live) {
  Quad<Raw> quad = {};
  CINCH_EACH {
    if (c < live) quad.at[c] = at[c];
  }
  return quad;
}
template <class Raw>
CINCH_FN void store_part(Raw* at, u32 live, Quad<Raw> quad) {
  CINCH_EACH {
    if (c < live) at[c] = quad.at[c];
  }
}

// Whole elements.
template <Access A, class Raw>
CINCH_FN Quad<Raw> load_raw(const Raw* at, bool is_aligned, u32 live) {
  if constexpr (A == Access::Whole) return load_span(at);
  return live == 4u && is_aligned ? load_span(at) : load_part(at, live);
}

// Elements index … index + 3 of a buffer, as many as are live; the others become 0. Whole rows: of
// row `turn` from there on.
template <class S, Access A>
CINCH_FN void load_four(const u8* buffer, i64 index, u32 turn, u32 live,
                        typename S::Compute (&out)[4]) {
  if constexpr (S::kIsWhole) {
    const auto* at =
        reinterpret_cast<const typename S::Raw*>(buffer) + index + i64(turn * kRowElems);
    const auto quad = load_raw<A>(at, holds_rows<S>(buffer, index), live);
    CINCH_EACH out[c] = S::decode(quad.at[c]);
  } else if constexpr (A == Access::Whole && kIsNibbles<S::kBits>) {
    // Four make 4, 8 or 16 bits, which lie within one unit of memory.
    using Unit = typename RawOf<S::kBits == 4 ? 16 : 8>::Type;
    const u64 first_bit = u64(index) * S::kBits;
    const u8* const at = buffer + (first_bit >> 3) + turn * (kRowElems * S::kBits / 8u);
    const u32 run = u32(*reinterpret_cast<const Unit*>(at)) >> u32(first_bit & 7u);
    CINCH_EACH out[c] = S::decode(run >> (c * S::kBits) & ((1u << S::kBits) - 1u));
  } else if constexpr (S::kBits <= 16) {
    const u64 first_bit = u64(index + i64(turn * kRowElems)) * S::kBits;
    const u64 run = read_bits<4 * S::kBits>(buffer, first_bit, live * S::kBits);
    CINCH_EACH out[c] = S::decode(run >> (c * S::kBits) & (~0ull >> (64 - S::kBits)));
  } else {
    CINCH_EACH {
      if (c < live) {
        out[c] = load_one<S>(buffer, index + i64(turn * kRowElems) + c);
      } else {
        out[c] = typename S::Compute(0);
      }
    }
  }
}

// The counterpart for whole elements: each lane for itself.
template <class S, Access A>
CINCH_FN void store_four(u8* buffer, i64 index, u32 turn, u32 live,
                         const typename S::Compute (&x)[4]) {
  Quad<typename S::Raw> quad;
  CINCH_EACH quad.at[c] = S::encode(x[c]);
  auto* at = reinterpret_cast<typename S::Raw*>(buffer) + index + i64(turn * kRowElems);
  if constexpr (A == Access::Whole) return store_span(at, quad);
  if (live == 4u && holds_rows<S>(buffer, index)) return store_span(at, quad);
  store_part(at, live, quad);
}

// Words of shared memory that a warp needs to pack a row of elements: 128 elements and a shifted
// start.
static __device__ constexpr u32 stage_words(u32 bits) {
  return 4u * bits + 2u;
}

// Puts the bits of one element into the stage, which is zero where they go.
CINCH_FN void stage_bits(u32* stage, u32 position, u64 value, u32 bits) {
  const u32 word = position >> 5, shift = position & 31u;
  atomicOr(stage + word, u32(value << shift));
  if (shift + bits > 32u) atomicOr(stage + word + 1, u32(value >> (32u - shift)));
  if (shift + bits > 64u) atomicOr(stage + word + 2, u32(value >> (64u - shift)));
}

// How many elements of a row are live, from every lane's own number.
CINCH_FN u32 row_live(u32 live) {
  return u32(
      __popc(__ballot_sync(kAllLanes, live > 0u)) + __popc(__ballot_sync(kAllLanes, live > 1u)) +
      __popc(__ballot_sync(kAllLanes, live > 2u)) + __popc(__ballot_sync(kAllLanes, live > 3u)));
}

// The part of a word that holds `num_bytes` bytes (at most 4), to any address.
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

// The word that this lane's run of 4 * Bits bits (1, 2 or 4 bits an element) is a part of; each
// lane of the word's gets it.
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

// Rows of a square of units, one row to a lane, become its columns: unit i of lane l goes to unit l
// of lane i, among neighbouring lanes as many as there are units.
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

// Packs so many whole rows from `begin` on, as holds_rows allows, by the runs of run_of: a lane
// gets the word of one row where lanes had a part of all rows' words.
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

// Packs a row that a few lanes share and whose bits begin and end with words, of which the first
// `len` elements exist.
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

// Packs row `turn` from `first_row_begin` on: lane l holds its elements 4l … 4l + 3, of which
// `live` exist; live elements form a prefix of the row. Bits in front of the row's first byte
// boundary belong to an earlier store of the same warp and stay; bits behind the last element
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
