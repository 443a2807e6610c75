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

// The element at a bit position: touches only bytes that hold some of its bits.
template <int Bits>
CINCH_FN u64 read_bits(const u8* bytes, u64 position) {
  const u64 first = position >> 3;
  const u32 shift = u32(position & 7u);
  const u32 count = (shift + u32(Bits) + 7u) >> 3;
  u64 low = 0, high = 0;
#pragma unroll
  for (u32 i = 0; i < (Bits + 14) / 8; ++i) {
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
  if (Bits + 7 > 64 && shift != 0) value |= high << (64u - shift);
  return value & (~0ull >> (64 - Bits));
}

template <class S>
CINCH_FN auto load_one(const u8* buffer, i64 index) {
  if constexpr (S::kIsWhole) {
    return S::decode(reinterpret_cast<const typename S::Raw*>(buffer)[index]);
  } else {
    return S::decode(read_bits<S::kBits>(buffer, u64(index) * S::kBits));
  }
}

// Whole elements only.
template <class S>
CINCH_FN void store_one(u8* buffer, i64 index, typename S::Compute x) {
  reinterpret_cast<typename S::Raw*>(buffer)[index] = S::encode(x);
}

// Elements index … index + 3 of a buffer, as many as are live; the others become 0.
template <class S>
CINCH_FN void load_four(const u8* buffer, i64 index, u32 live, typename S::Compute (&out)[4]) {
  using Raw = typename S::Raw;
  if constexpr (S::kIsWhole) {
    constexpr int kSpan = sizeof(Raw) == 8 ? 2 : 4;
    using Span = Pack<Raw, kSpan>;
    const Raw* at = reinterpret_cast<const Raw*>(buffer) + index;
    if (live == 4u && (reinterpret_cast<u64>(at) & (sizeof(Span) - 1)) == 0) {
#pragma unroll
      for (int part = 0; part < 4 / kSpan; ++part) {
        const Span span = reinterpret_cast<const Span*>(at)[part];
#pragma unroll
        for (int i = 0; i < kSpan; ++i) out[part * kSpan + i] = S::decode(span.at[i]);
      }
      return;
    }
  } else if constexpr (S::kBits == 1) {
    // Four neighbours from a multiple of four on share a byte.
    if (live == 4u && (index & 3) == 0) {
      const u32 nibble = u32(buffer[index >> 3]) >> u32(index & 7);
      CINCH_EACH out[c] = S::decode(nibble >> c & 1u);
      return;
    }
  }
  CINCH_EACH {
    if (c < live) {
      out[c] = load_one<S>(buffer, index + c);
    } else {
      out[c] = typename S::Compute(0);
    }
  }
}

// The counterpart for whole elements: each lane for itself.
template <class S>
CINCH_FN void store_four(u8* buffer, i64 index, u32 live, const typename S::Compute (&x)[4]) {
  using Raw = typename S::Raw;
  constexpr int kSpan = sizeof(Raw) == 8 ? 2 : 4;
  using Span = Pack<Raw, kSpan>;
  Raw* at = reinterpret_cast<Raw*>(buffer) + index;
  if (live == 4u && (reinterpret_cast<u64>(at) & (sizeof(Span) - 1)) == 0) {
#pragma unroll
    for (int part = 0; part < 4 / kSpan; ++part) {
      Span span;
#pragma unroll
      for (int i = 0; i < kSpan; ++i) span.at[i] = S::encode(x[part * kSpan + i]);
      reinterpret_cast<Span*>(at)[part] = span;
    }
    return;
  }
  CINCH_EACH {
    if (c < live) at[c] = S::encode(x[c]);
  }
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

// A row of single bits that starts at a byte: eight lanes make a word.
CINCH_FN void pack_row_of_bits(u8* to, u32 nibble, u32 num_live) {
  const u32 lane = lane_index();
  u32 word = nibble << (4u * (lane & 7u));
#pragma unroll
  for (u32 distance = 1; distance < 8u; distance *= 2) {
    word |= __shfl_xor_sync(kAllLanes, word, int(distance));
  }
  const u32 before = 4u * (lane & ~7u);
  if ((lane & 7u) == 0u && before < num_live) {
    store_word(to + before / 8u, word, (num_live - before + 7u) / 8u);
  }
  __syncwarp();
}

// Packs a row of the tile: lane l holds elements row_begin + 4l … + 3, of which `live` exist; live
// elements form a prefix of the row. Bits in front of the row's first byte boundary belong to an
// earlier store of the same warp and stay; bits behind the last element become 0. `stage` is this
// warp's shared memory of stage_words(bits).
template <class S>
CINCH_FN void pack_four(u8* buffer, i64 row_begin, u32 live, const typename S::Compute (&x)[4],
                        u32* stage) {
  constexpr u32 kBits = S::kBits;
  const u32 lane = lane_index();
  const u64 first_bit = u64(row_begin) * kBits;
  const u32 phase = u32(first_bit & 7u);
  u8* const to = buffer + (first_bit >> 3);
  const u32 num_live = row_live(live);
  if (num_live == 0u) return;
  if constexpr (kBits == 1u) {
    if (phase == 0u) {
      u32 nibble = 0;
      CINCH_EACH nibble |= c < live ? u32(S::encode(x[c])) << c : 0u;
      return pack_row_of_bits(to, nibble, num_live);
    }
  }
  const u32 num_bytes = (phase + num_live * kBits + 7u) >> 3;
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
