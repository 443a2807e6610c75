// packed.h: elements of B bits, least significant bit first, without gaps. A tile's values are in a
// stage on the stack (one u8, u16, u32 or u64 each; for B = 1 one bit each) and move to or from the
// buffer in one run. A run may begin inside a byte: the bits below belong to an earlier store of
// the same task and stay. The bits behind the last element become 0. Needs memory.h.

namespace cinch {

template <int B>
constexpr u64 kLowBits = ~0ull >> (64 - B);

// For packing and back: in every 2 * Half bits, joins the low `Bits` with those that are Half
// above.
template <int Bits, int Half, class U>
CINCH_CALL U join_halves(U x) {
  constexpr u64 kField = Bits == 64 ? ~0ull : (1ull << Bits) - 1;
  u64 low = 0;
  for (int at = 0; at < 64; at += 2 * Half) low |= kField << at;
  return (x & low) | ((x >> (Half - Bits)) & (low << Bits));
}
template <int Bits, int Half, class U>
CINCH_CALL U part_halves(U x) {
  constexpr u64 kField = (1ull << Bits) - 1;
  u64 low = 0;
  for (int at = 0; at < 64; at += 2 * Half) low |= kField << at;
  return (x & low) | ((x & (low << Bits)) << (Half - Bits));
}

// Packs eight bytes of B <= 8 bits each to 8 * B bits, and back. U is u64, or several of them: by
// vectors this is as fast as the processor's instruction for it, which takes hundreds of cycles on
// AMD's before Zen 3.
template <int B, class U>
CINCH_CALL U squeeze_bytes(U x) {
  if constexpr (B == 8) return x;
  x &= 0x0101010101010101ull * kLowBits<B>;
  return join_halves<4 * B, 32>(join_halves<2 * B, 16>(join_halves<B, 8>(x)));
}
template <int B, class U>
CINCH_CALL U spread_bytes(U x) {
  if constexpr (B == 8) return x;
  return part_halves<B, 8>(part_halves<2 * B, 16>(part_halves<4 * B, 32>(x)));
}
// Packs four u16 of B <= 16 bits each to 4 * B bits, and back.
template <int B, class U>
CINCH_CALL U squeeze_words(U x) {
  x &= 0x0001000100010001ull * kLowBits<B>;
  return join_halves<2 * B, 32>(join_halves<B, 16>(x));
}
template <int B, class U>
CINCH_CALL U spread_words(U x) {
  return part_halves<B, 16>(part_halves<2 * B, 32>(x));
}
// Four groups of eight elements.
using FourWords = lang::Vec<u64, 4>;

// Writes fields of any width one after another.
struct BitWriter {
  u8* to;
  unsigned __int128 held;
  u32 num_held;
  CINCH_MEMBER void put(u64 field, u32 bits) {
    held |= (unsigned __int128)field << num_held;
    num_held += bits;
    if (num_held < 64) return;
    const u64 whole = u64(held);
    __builtin_memcpy(to, &whole, 8);
    to += 8;
    held >>= 64;
    num_held -= 64;
  }
  CINCH_MEMBER void close() {
    for (; num_held >= 8; num_held -= 8, held >>= 8) *to++ = u8(held);
    if (num_held != 0) *to = u8(held);
  }
};
CINCH_CALL BitWriter write_bits_from(u8* buffer, u64 first_bit) {
  u8* to = buffer + first_bit / 8;
  const u32 inside = u32(first_bit % 8);
  return {to, inside ? (unsigned __int128)(*to & ((1u << inside) - 1)) : 0, inside};
}
// Reads the bytes of the given fields and no others.
struct BitReader {
  const u8* from;
  unsigned __int128 held;
  u32 num_held;
  CINCH_MEMBER u64 take(u32 bits, u64 mask) {
    for (; num_held < bits; num_held += 8) held |= (unsigned __int128)*from++ << num_held;
    const u64 field = u64(held) & mask;
    held >>= bits;
    num_held -= bits;
    return field;
  }
};
CINCH_CALL BitReader read_bits_from(const u8* buffer, u64 first_bit, u32 count) {
  const u8* from = buffer + first_bit / 8;
  const u32 inside = u32(first_bit % 8);
  if (inside == 0 || count == 0) return {from, 0, 0};
  return {from + 1, (unsigned __int128)(*from >> inside), 8 - inside};
}

template <int B, class S>
CINCH_HELPER_OF void pack_run(u8* buffer, i64 first, const S* stage, u32 count) {
  BitWriter writer = write_bits_from(buffer, u64(first) * B);
  u32 i = 0;
  if constexpr (B <= 16) {
    if (writer.num_held == 0) {
      if constexpr (sizeof(S) == 1) {
        for (; i + 32 <= count; i += 32) {
          FourWords x;
          __builtin_memcpy(&x, stage + i, sizeof x);
          x = squeeze_bytes<B>(x);
#pragma unroll
          for (int k = 0; k < 4; ++k, writer.to += B) {
            const u64 bits = x[k];
            __builtin_memcpy(writer.to, &bits, B);
          }
        }
      } else if constexpr (sizeof(S) == 2) {
        for (; i + 16 <= count; i += 16) {
          FourWords x;
          __builtin_memcpy(&x, stage + i, sizeof x);
          x = squeeze_words<B>(x);
#pragma unroll
          for (int k = 0; k < 4; k += 2, writer.to += B) {
            const unsigned __int128 bits = x[k] | (unsigned __int128)u64(x[k + 1]) << (4 * B);
            __builtin_memcpy(writer.to, &bits, B);
          }
        }
      }
      for (; i + 8 <= count; i += 8, writer.to += B) {
        u64 x[sizeof(S)];
        __builtin_memcpy(x, stage + i, 8 * sizeof(S));
        if constexpr (sizeof(S) == 1) {
          const u64 bits = squeeze_bytes<B>(x[0]);
          __builtin_memcpy(writer.to, &bits, B);
        } else {
          const unsigned __int128 bits =
              squeeze_words<B>(x[0]) | (unsigned __int128)squeeze_words<B>(x[1]) << (4 * B);
          __builtin_memcpy(writer.to, &bits, B);
        }
      }
    }
  }
  for (; i < count; ++i) writer.put(u64(stage[i]) & kLowBits<B>, B);
  writer.close();
}
// Reads `count` elements, then zeros to the end of the last vector.
template <int B, class S>
CINCH_HELPER_OF void unpack_run(const u8* buffer, i64 first, S* stage, u32 count, u32 stage_count) {
  u32 i = 0;
  const u64 first_bit = u64(first) * B;
  if constexpr (B <= 16) {
    if (first_bit % 8 == 0) {
      const u8* from = buffer + first_bit / 8;
      if constexpr (sizeof(S) == 1) {
        for (; i + 32 <= count; i += 32, from += 4 * B) {
          FourWords x = {};
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            u64 bits = 0;
            __builtin_memcpy(&bits, from + k * B, B);
            x[k] = bits;
          }
          x = spread_bytes<B>(x);
          __builtin_memcpy(stage + i, &x, sizeof x);
        }
      }
      for (; i + 8 <= count; i += 8, from += B) {
        if constexpr (sizeof(S) == 1) {
          u64 bits = 0;
          __builtin_memcpy(&bits, from, B);
          const u64 x = spread_bytes<B>(bits);
          __builtin_memcpy(stage + i, &x, 8);
        } else {
          unsigned __int128 bits = 0;
          __builtin_memcpy(&bits, from, B);
          const u64 x[2] = {spread_words<B>(u64(bits) & (~0ull >> (64 - 4 * B))),
                            spread_words<B>(u64(bits >> (4 * B)))};
          __builtin_memcpy(stage + i, x, 16);
        }
      }
    }
  }
  BitReader reader = read_bits_from(buffer, first_bit + u64(i) * B, count - i);
  for (; i < count; ++i) stage[i] = S(reader.take(B, kLowBits<B>));
  for (; i < stage_count; ++i) stage[i] = 0;
}

// W neighbouring elements, the first of which begins at a byte: each lane shifts its own element
// down. Only if a vector's elements fill bytes, and the machine can shift lanes by different
// numbers.
#if defined(__AVX2__)
template <int B>
constexpr bool kTakesInPlace = B < 8 && 32 % B == 0 && W * B % 8 == 0 && W * B <= 64;
#else
template <int B>
constexpr bool kTakesInPlace = false;
#endif
template <int B>
CINCH_CALL Lanes<u32> lanes_in_place(const u8* from) {
  constexpr int kBits = W * B;
  Lanes<u32> words;
  if constexpr (kBits == 16) {
    u16 word;
    __builtin_memcpy(&word, from, sizeof word);
    words = __builtin_bit_cast(Lanes<u32>, lang::splat<lang::Vec<u16, 2 * W>>(word));
  } else {
    u64 word = 0;
    __builtin_memcpy(&word, from, kBits / 8);
    words = wide(u32(word));
    if constexpr (kBits > 32) {
      words = op_select(first_lanes(32 / B), words, wide(u32(word >> 32)));
    }
  }
  const Lanes<u32> down = (lane_numbers() * wide(u32(B))) & wide(31u);
  return (words >> down) & wide(u32(kLowBits<B>));
}
// Elements i … i + W - 1 of a tile, from the stage. In whole tiles, from the buffer if they begin
// at the byte `from`.
template <int B, bool Whole, class S>
CINCH_CALL auto packed_lanes(Known<Whole>, const S* stage, u32 i, const u8* from) {
  if constexpr (Whole && kTakesInPlace<B>) {
    return lanes_in_place<B>(from + u64(i) * B / 8);
  } else {
    return local_lanes(stage + i);
  }
}

// Single bits. The stage holds 1024 of them, and a vector more.
struct BitStage {
  u8 bytes[kTile / 8 + 8];
};
CINCH_CALL void stage_bits(BitStage& stage, u32 place, Truth x) {
  const u32 bits = bits_of_truth(x);
#if CINCH_LANES == 4
  u8& byte = stage.bytes[place / 8];
  byte = place % 8 == 0 ? u8(bits) : u8(byte | bits << 4);
#else
  const LaneWord word = LaneWord(bits);
  __builtin_memcpy(&stage.bytes[place / 8], &word, sizeof word);
#endif
}
CINCH_CALL Truth staged_bits(const BitStage& stage, u32 place) {
#if CINCH_LANES == 4
  return truth_of_bits(u32(stage.bytes[place / 8] >> place % 8) & 15u);
#else
  LaneWord word;
  __builtin_memcpy(&word, &stage.bytes[place / 8], sizeof word);
  return truth_of_bits(word);
#endif
}
CINCH_HELPER void pack_bits(u8* buffer, i64 first, const BitStage& stage, u32 count);
CINCH_HELPER void unpack_bits(const u8* buffer, i64 first, BitStage& stage, u32 count);
#if CINCH_HELPERS != 1
CINCH_HELPER void pack_bits(u8* buffer, i64 first, const BitStage& stage, u32 count) {
  if (count == 0) return;
  BitWriter writer = write_bits_from(buffer, u64(first));
  if (writer.num_held == 0 && count == kTile) {
    __builtin_memcpy(writer.to, stage.bytes, kTile / 8);
    return;
  }
  u32 i = 0;
  for (; i + 8 <= count; i += 8) writer.put(stage.bytes[i / 8], 8);
  if (i < count) writer.put(stage.bytes[i / 8] & ((1u << (count - i)) - 1), count - i);
  writer.close();
}
CINCH_HELPER void unpack_bits(const u8* buffer, i64 first, BitStage& stage, u32 count) {
  if (count == kTile && first % 8 == 0) {
    __builtin_memcpy(stage.bytes, buffer + first / 8, kTile / 8);
    return;
  }
  BitReader reader = read_bits_from(buffer, u64(first), count);
  u32 i = 0;
  for (; i + 8 <= count; i += 8) stage.bytes[i / 8] = u8(reader.take(8, 255));
  if (i < count) stage.bytes[i / 8] = u8(reader.take(count - i, (1u << (count - i)) - 1)), i += 8;
  for (; i < kTile + 64; i += 8) stage.bytes[i / 8] = 0;
}
#endif

// One packed element at any place.
template <int B>
CINCH_CALL u64 load_packed(const u8* buffer, i64 place) {
  return read_bits_from(buffer, u64(place) * B, 1).take(B, kLowBits<B>);
}
// Do all lanes read, each the element behind that of the lane before?
template <class I>
CINCH_CALL bool is_whole_run(I index, Truth live) {
  if constexpr (sizeof(lang::Element<I>) == 4) {
    const auto places = __builtin_bit_cast(Lanes<u32>, index);
    const u32 first = places[0];
    return bits_of_truth(live) == (1u << W) - 1 && first <= 0u - u32(W) &&
           !any_lane(Truth(places != lane_numbers() + wide(first)));
  } else {
    return false;
  }
}
// The bits of W elements, from element `first` on: at most 56, so that they lie in eight bytes.
template <int B>
constexpr bool kRunFitsWord = W * B <= 56;
template <int B>
CINCH_CALL u64 word_of_run(const u8* buffer, u64 first) {
  const u64 bit = first * B;
  const u32 bytes = u32(bit % 8 + W * B + 7) / 8;
  u64 word = 0;
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < bytes; ++i) word |= u64(buffer[bit / 8 + i]) << (8 * i);
  return word >> (bit % 8);
}
template <int B, class S, class I>
CINCH_CALL Lanes<S> gather_packed(const u8* buffer, I index, Truth live) {
  if constexpr (kRunFitsWord<B>) {
    if (is_whole_run(index, live)) {
      const u64 word = word_of_run<B>(buffer, u64(index[0]));
      LaneArray<S> run;
#pragma unroll
      for (int l = 0; l < W; ++l) run.at[l] = S((word >> (l * B)) & kLowBits<B>);
      return __builtin_bit_cast(Lanes<S>, run);
    }
  }
  const auto places = lane_array(index);
  LaneArray<S> some = {};
#pragma clang loop unroll(disable)
  for (u32 rest = bits_of_truth(live); rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    some.at[i] = S(load_packed<B>(buffer, i64(places.at[i])));
  }
  return __builtin_bit_cast(Lanes<S>, some);
}
template <class I>
CINCH_CALL Truth gather_bits(const u8* buffer, I index, Truth live) {
  if (is_whole_run(index, live))
    return truth_of_bits(u32(word_of_run<1>(buffer, u64(index[0]))) & ((1u << W) - 1));
  return Truth(gather_packed<1, u32>(buffer, index, live) != 0);
}

}  // namespace cinch

// Linked instances for fields of B bits that are staged as S.
#define CINCH_LINKED_RUN(B, S)                                                           \
  namespace cinch {                                                                      \
  CINCH_INSTANCE void pack_run<B, S>(u8 * buffer, i64 first, const S* stage, u32 count); \
  CINCH_INSTANCE void unpack_run<B, S>(const u8* buffer, i64 first, S* stage, u32 count, \
                                       u32 stage_count);                                 \
  }
