// storage.h: elements as buffers hold them and as kernels compute with them. Needs warp.h.
//
// A Stored<Kind, Bits, StorageBits> is one dtype in one layout. Whole elements (8, 16, 32, 64 bits)
// are loaded and stored four at a time if the address allows. Other widths are runs of bits, least
// significant first, without padding.

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
  // Holds one element's bits. Runs of bits use u64.
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

  // Makes NaN of floats canonical. Integers are within their width already.
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

// Reads `bits` bits (at most Most) from a bit position on. Touches only bytes that hold some of
// them.
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

// For whole elements only.
template <class S>
CINCH_FN void store_one(u8* buffer, i64 index, typename S::Compute x) {
  reinterpret_cast<typename S::Raw*>(buffer)[index] = S::encode(x);
}

// Four whole elements move as one or two spans.
template <class Raw>
constexpr int kSpanElems = sizeof(Raw) == 8 ? 2 : 4;
template <class Raw>
using Span = Pack<Raw, kSpanElems<Raw>>;

// Do four elements of this many bits lie within a word?
template <int Bits>
static __device__ constexpr bool kIsNibbles = Bits == 1 || Bits == 2 || Bits == 4;

// Can rows, of four elements for each lane, be moved from `index` on as Access::Whole?
template <class S>
CINCH_FN bool holds_rows(const u8* buffer, i64 index) {
  if constexpr (S::kIsWhole) {
    using Raw = typename S::Raw;
    const u64 at = reinterpret_cast<u64>(reinterpret_cast<const Raw*>(buffer) + index);
    return (at & (sizeof(Span<Raw>) - 1)) == 0;
  } else if constexpr (kIsNibbles<S::kBits>) {
    // Rows are whole words, at addresses of words.
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
// Names the instructions, because compilers split some wide accesses into several narrow ones.
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
  Whole,  // all are live, and holds_rows() is true
  Any     // at once if possible, else one by one
};

// One by one, for a row that is not whole.
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

// For whole elements.
template <Access A, class Raw>
CINCH_FN Quad<Raw> load_raw(const Raw* at, bool is_aligned, u32 live) {
  if constexpr (A == Access::Whole) return load_span(at);
  return live == 4u && is_aligned ? load_span(at) : load_part(at, live);
}

// Loads elements index … index + 3 of a buffer, as many as are live. The others become 0. With
// whole rows, loads those of row `turn` from there on.
template <class S, Access A>
CINCH_FN void load_four(const u8* buffer, i64 index, u32 turn, u32 live,
                        typename S::Compute (&out)[4]) {
  if constexpr (S::kIsWhole) {
    const auto* at =
        reinterpret_cast<const typename S::Raw*>(buffer) + index + i64(turn * kRowElems);
    const auto quad = load_raw<A>(at, holds_rows<S>(buffer, index), live);
    CINCH_EACH out[c] = S::decode(quad.at[c]);
  } else if constexpr (A == Access::Whole && kIsNibbles<S::kBits>) {
    // Four elements are 4, 8 or 16 bits, which lie within one unit of memory.
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

// Stores whole elements. Each lane stores its own.
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

}  // namespace cinch
