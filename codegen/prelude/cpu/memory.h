// memory.h: unpacked elements of buffers, at any address, never a byte beyond the given places. S
// is the stored element (u8 … u64, i8 … i64, f32, f64; narrow floats as their bits). Needs
// vectors.h.

namespace cinch {

template <class S>
CINCH_CALL S load_one(const u8* buffer, i64 place) {
  S x;
  __builtin_memcpy(&x, buffer + u64(place) * sizeof(S), sizeof(S));
  return x;
}
template <class S>
CINCH_CALL void store_one(u8* buffer, i64 place, S x) {
  __builtin_memcpy(buffer + u64(place) * sizeof(S), &x, sizeof(S));
}

// The end of a run, where a vector is not whole: moves `count` elements of `size` bytes between a
// buffer and lanes in memory. Callers keep all their registers.
#if __has_feature(address_sanitizer)
// A sanitizer's code inside a function does not preserve the caller's vectors.
#define CINCH_END_HELPER CINCH_HELPER
#else
#define CINCH_END_HELPER CINCH_HELPER __attribute__((preserve_all))
#endif
CINCH_END_HELPER void load_some(void* lanes, const u8* buffer, i64 first, u32 count, u32 size);
CINCH_END_HELPER void store_some(u8* buffer, i64 first, u32 count, const void* lanes, u32 size);
#if CINCH_HELPERS != 1
CINCH_CALL void copy_some(u8* to, const u8* from, u32 size) {
  u32 i = 0;
#pragma clang loop unroll(disable) vectorize(disable)
  for (; i + 4 <= size; i += 4) __builtin_memcpy(to + i, from + i, 4);
#pragma clang loop unroll(disable) vectorize(disable)
  for (; i < size; ++i) to[i] = from[i];
}
CINCH_END_HELPER void load_some(void* lanes, const u8* buffer, i64 first, u32 count, u32 size) {
  copy_some((u8*)lanes, buffer + u64(first) * size, count * size);
}
CINCH_END_HELPER void store_some(u8* buffer, i64 first, u32 count, const void* lanes, u32 size) {
  copy_some(buffer + u64(first) * size, (const u8*)lanes, count * size);
}
#endif

// Places first … first + count - 1, where count <= W. Lanes beyond are 0.
template <class S>
CINCH_CALL Lanes<S> load_lanes(const u8* buffer, i64 first, u32 count) {
  Lanes<S> x;
  if (__builtin_expect(count == W, 1)) {
    __builtin_memcpy(&x, buffer + u64(first) * sizeof(S), sizeof x);
    return x;
  }
  S part[W] = {};
  load_some(part, buffer, first, count, sizeof(S));
  __builtin_memcpy(&x, part, sizeof x);
  return x;
}
template <class S>
CINCH_CALL void store_lanes(u8* buffer, i64 first, u32 count, Lanes<S> x) {
  if (__builtin_expect(count == W, 1)) {
    __builtin_memcpy(buffer + u64(first) * sizeof(S), &x, sizeof x);
    return;
  }
  S part[W];
  __builtin_memcpy(part, &x, sizeof x);
  store_some(buffer, first, count, part, sizeof(S));
}

// A vector's lanes in memory, for loops that visit some of them. The loop reads a lane just after
// it was stored; processors forward the store only within a cache line.
template <class E>
struct alignas(W * sizeof(E)) LaneArray {
  E at[W];
};
template <class V>
CINCH_CALL LaneArray<lang::Element<V>> lane_array(V x) {
  return __builtin_bit_cast(LaneArray<lang::Element<V>>, x);
}

// The same value, of which the compiler knows nothing. Where LLVM 19 knows which bits of a chosen
// vector (select) can be set, it drops the mask that parts two lanes: `h[min(i, 63)]` read at both
// lanes as one place.
template <class V>
CINCH_CALL V unknown(V x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
  return x;
}

// The lanes of an index as scalars. One instruction takes two lanes of 32 bits out of a vector.
template <class I>
CINCH_CALL LaneArray<lang::Element<I>> lane_places(I index) {
  using E = lang::Element<I>;
  if constexpr (sizeof(E) == 4) {
    const auto pairs = unknown(__builtin_bit_cast(lang::Vec<u64, W / 2>, index));
    LaneArray<E> places;
#pragma unroll
    for (int i = 0; i < W / 2; ++i) {
      const u64 pair = pairs[i];
      places.at[2 * i] = E(u32(pair));
      places.at[2 * i + 1] = E(u32(pair >> 32));
    }
    return places;
  } else {
    return lane_array(index);
  }
}

// Does every lane read at most a vector behind the first lane's place, and not behind the last
// lane's place? Then one load and a permutation are enough.
#if !__has_feature(address_sanitizer) && CINCH_LANES == 16 && defined(__AVX512F__)
#define CINCH_NEAR_LANES 1
CINCH_CALL Lanes<u32> load_near(const u8* from, u32 count, Lanes<u32> offset) {
  using V16 = i32 __attribute__((vector_size(64)));
  const u16 in = u16((2u << (count - 1)) - 1);
  const V16 x = (V16)__builtin_ia32_loaddqusi512_mask((const int*)from, V16{}, in);
  return __builtin_bit_cast(Lanes<u32>, __builtin_ia32_permvarsi512(x, (V16)offset));
}
#elif !__has_feature(address_sanitizer) && CINCH_LANES == 8 && defined(__AVX2__)
#define CINCH_NEAR_LANES 1
CINCH_CALL Lanes<u32> load_near(const u8* from, u32 count, Lanes<u32> offset) {
  using V8 = i32 __attribute__((vector_size(32)));
  const V8 in = __builtin_bit_cast(V8, first_lanes(count));
  const V8 x = (V8)__builtin_ia32_maskloadd256((const V8*)from, in);
  return __builtin_bit_cast(Lanes<u32>, __builtin_ia32_permvarsi256(x, (V8)offset));
}
#else
#define CINCH_NEAR_LANES 0
#endif

// buffer[index] if `live`, else 0. Touches nothing else.
template <class S, class I>
CINCH_CALL Lanes<S> gather_lanes(const u8* buffer, I index, Truth live) {
  const u32 bits = bits_of_truth(live);
  if (__builtin_expect(bits == (1u << W) - 1, 1)) {
#if CINCH_NEAR_LANES
    if constexpr (sizeof(S) == 4 && sizeof(lang::Element<I>) == 4) {
      const auto places = __builtin_bit_cast(Lanes<u32>, index);
      const Lanes<u32> offset = places - wide(places[0]);
      const u32 reach = offset[W - 1];
      if (reach < u32(W) && !any_lane(Truth(offset > wide(reach)))) {
        const u8* from = buffer + u64(places[0]) * sizeof(S);
        return __builtin_bit_cast(Lanes<S>, load_near(from, reach + 1, offset));
      }
    }
#endif
    // Words of packed fields mostly lie in a row.
    if constexpr (sizeof(S) == 8 && sizeof(lang::Element<I>) == 4) {
      const auto places = __builtin_bit_cast(Lanes<u32>, index);
      const u32 first = places[0];
      const bool is_row = !any_lane(Truth(places != lane_numbers() + wide(first)));
      if (is_row && first <= places[W - 1]) return load_lanes<S>(buffer, i64(first), u32(W));
    }
    Lanes<S> x = Lanes<S>(S(0));
    if constexpr (sizeof(S) == 4) {
      const auto places = lane_places(index);
#pragma unroll
      for (int i = 0; i < W; ++i) x[i] = load_one<S>(buffer, i64(places.at[i]));
    } else {
#pragma unroll
      for (int i = 0; i < W; ++i) x[i] = load_one<S>(buffer, i64(index[i]));
    }
    return x;
  }
  const auto places = lane_array(index);
  LaneArray<S> some = {};
#pragma clang loop unroll(disable)
  for (u32 rest = bits; rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    some.at[i] = load_one<S>(buffer, i64(places.at[i]));
  }
  return __builtin_bit_cast(Lanes<S>, some);
}
// The same for a buffer of Num elements of 32 bits, which fit two vectors.
template <class S, u32 Num>
CINCH_CALL Lanes<S> pick_lanes(const u8* buffer, Lanes<u32> index, Truth live) {
#if CINCH_LANES == 16 && defined(__AVX512F__)
  using V16 = i32 __attribute__((vector_size(64)));
  constexpr u32 kHigh = Num > u32(W) ? Num - u32(W) : 0;
  const int* from = (const int*)buffer;
  const V16 low =
      (V16)__builtin_ia32_loaddqusi512_mask(from, V16{}, u16((1ull << (Num - kHigh)) - 1));
  const V16 high =
      kHigh == 0 ? V16{}
                 : (V16)__builtin_ia32_loaddqusi512_mask(from + W, V16{}, u16((1u << kHigh) - 1));
  const V16 x = (V16)__builtin_ia32_vpermi2vard512(low, __builtin_bit_cast(V16, index), high);
  return op_select(live, __builtin_bit_cast(Lanes<S>, x), Lanes<S>(S(0)));
#else
  return gather_lanes<S>(buffer, index, live);
#endif
}
// The same for lanes in a row.
template <class S, class I>
CINCH_CALL Lanes<S> load_row(const u8* buffer, I index, Truth live) {
  if (__builtin_expect(bits_of_truth(live) == (1u << W) - 1, 1)) {
    return load_lanes<S>(buffer, i64(index[0]), W);
  }
  return gather_lanes<S>(buffer, index, live);
}
// The same if all lanes have one index.
template <class S, class I>
CINCH_CALL Lanes<S> load_alike(const u8* buffer, I index, Truth live) {
  const u32 bits = bits_of_truth(live);
  if (__builtin_expect(bits == (1u << W) - 1, 1)) {
    return lang::splat<Lanes<S>>(load_one<S>(buffer, i64(index[0])));
  }
  if (bits == 0) return Lanes<S>(S(0));
  const Lanes<S> x = lang::splat<Lanes<S>>(load_one<S>(buffer, i64(index[0])));
  return op_select(live, x, Lanes<S>(S(0)));
}
// Calls visit(place, value) for the lanes in `live`, in order. Usually all lanes are live, and none
// is tested alone.
template <class I, class V, class Visit>
CINCH_CALL void visit_lanes(I index, V x, Truth live, const Visit& visit) {
  const u32 bits = bits_of_truth(live);
  const auto values = lane_array(x);
  if (__builtin_expect(bits == (1u << W) - 1, 1)) {
    const auto places = lane_places(index);
#pragma unroll
    for (int i = 0; i < W; ++i) visit(i64(places.at[i]), values.at[i]);
    return;
  }
  const auto places = lane_array(index);
#pragma clang loop unroll(disable)
  for (u32 rest = bits; rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    visit(i64(places.at[i]), values.at[i]);
  }
}
// buffer[index] = x for the `live` lanes, in order.
template <class S, class I>
CINCH_CALL void scatter_lanes(u8* buffer, I index, Lanes<S> x, Truth live) {
  visit_lanes(index, x, live, [&](i64 place, S value) __attribute__((always_inline)) {
    store_one<S>(buffer, place, value);
  });
}
// The same for places that grow by one from lane to lane. If they wrap, lanes are stored one by
// one.
template <class S>
CINCH_CALL void store_run(u8* buffer, Lanes<u32> index, Lanes<S> x, Truth live) {
  const u32 bits = bits_of_truth(live), first = index[0];
  if (__builtin_expect(bits == (1u << W) - 1 && first <= 0u - u32(W), 1)) {
    return store_lanes<S>(buffer, i64(first), u32(W), x);
  }
  scatter_lanes<S>(buffer, index, x, live);
}
#if CINCH_LANES == 8 && defined(__AVX2__)
// For each set of eight lanes: the numbers of those that are kept, one per byte. Instructions that
// press bits together would do without a table, but take hundreds of cycles on AMD's before Zen 3.
struct KeptLanes {
  u64 of[256];
  constexpr KeptLanes() : of() {
    for (u32 kept = 0; kept < 256; ++kept) {
      u32 num = 0;
      for (u32 lane = 0; lane < 8; ++lane) {
        if ((kept >> lane & 1) != 0) of[kept] |= u64(lane) << (8 * num++);
      }
    }
  }
};
static constexpr KeptLanes kKeptLanes;
#endif
// Stores the lanes of x in `keep` at consecutive places from `first` on.
template <class S>
CINCH_CALL void store_kept_lanes(u8* buffer, i64 first, Lanes<S> x, Truth keep) {
  u32 rest = bits_of_truth(keep);
  if (rest == 0) return;
  u8* to = buffer + u64(first) * sizeof(S);
#if CINCH_LANES == 16 && defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(S) <= 4) {
    using Wide = lang::Vec<i32, W>;
    using V16 = i32 __attribute__((vector_size(64)));
    const Wide whole = lang::convert<i32>(__builtin_bit_cast(lang::SignedLike<Lanes<S>>, x));
    const V16 packed = __builtin_ia32_compresssi512_mask(__builtin_bit_cast(V16, whole), V16{},
                                                         (unsigned short)rest);
    const u16 count = u16((1u << __builtin_popcount(rest)) - 1);
    if constexpr (sizeof(S) == 4) {
      __builtin_ia32_storedqusi512_mask((int*)to, packed, count);
    } else if constexpr (sizeof(S) == 2) {
      using V = i16 __attribute__((vector_size(32)));
      __builtin_ia32_storedquhi256_mask((V*)to, __builtin_convertvector(packed, V), count);
    } else {
      using V = char __attribute__((vector_size(16)));
      __builtin_ia32_storedquqi128_mask((V*)to, __builtin_convertvector(packed, V), count);
    }
    return;
  }
#elif CINCH_LANES == 8 && defined(__AVX2__)
  if constexpr (sizeof(S) == 4) {
    using V8 = i32 __attribute__((vector_size(32)));
    using B8 = u8 __attribute__((vector_size(8)));
    const V8 pick = __builtin_convertvector(__builtin_bit_cast(B8, kKeptLanes.of[rest]), V8);
    const V8 packed = __builtin_ia32_permvarsi256(__builtin_bit_cast(V8, x), pick);
    const Truth in = first_lanes(u32(__builtin_popcount(rest)));
    __builtin_ia32_maskstored256((V8*)to, __builtin_bit_cast(V8, in), packed);
    return;
  }
#endif
  const auto values = lane_array(x);
#pragma clang loop unroll(disable)
  for (; rest != 0; rest &= rest - 1, to += sizeof(S)) {
    __builtin_memcpy(to, &values.at[__builtin_ctz(rest)], sizeof(S));
  }
}
// The same up to the place `limit`.
template <class S>
CINCH_CALL void store_kept_lanes_below(u8* buffer, i64 limit, i64 first, Lanes<S> x, Truth keep) {
  const u32 bits = bits_of_truth(keep);
  if (__builtin_expect(first + i64(__builtin_popcount(bits)) > limit, 0)) {
    u32 kept = 0, rest = bits;
    for (i64 place = first; place < limit && rest != 0; ++place, rest &= rest - 1) {
      kept |= rest & (0 - rest);
    }
    keep = truth_of_bits(kept);
  }
  store_kept_lanes<S>(buffer, first, x, keep);
}
// buffer[index] = buffer[index] + x for the `live` lanes, in order.
template <class S, class E, class I, class Add>
CINCH_CALL void add_lanes(u8* buffer, I index, Lanes<E> x, Truth live, const Add& add) {
  visit_lanes(index, x, live, [&](i64 place, E value) __attribute__((always_inline)) {
    store_one<S>(buffer, place, add(load_one<S>(buffer, place), value));
  });
}

// buffer[index] = max(buffer[index], x) if `live`. Tasks share the cells; the order does not
// matter.
template <class S, class I>
CINCH_CALL void max_lanes(u8* buffer, I index, Lanes<S> x, Truth live) {
  visit_lanes(index, x, live, [&](i64 place, S value) __attribute__((always_inline)) {
    S* const cell = (S*)buffer + place;
    S seen = __atomic_load_n(cell, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(cell, &seen, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
    }
  });
}

// Processors do not foresee in which order a loop along a tile's columns touches cache lines. In
// each turn, from column `first` on, this prefetches an equal part of the tile after the next one.
template <class S, bool IsStore>
CINCH_CALL void fetch_ahead(const u8* buffer, i64 tile, u32 first) {
  constexpr u32 kRows = 8, kBytes = kRows * W * sizeof(S), kLine = 64;
  const u64 from = u64(buffer) + (u64(tile) + 2 * kTile + first * kRows) * sizeof(S);
#pragma unroll
  for (u32 at = 0; at < kBytes; at += kLine) __builtin_prefetch((const u8*)(from + at), IsStore);
}

// Elements of a local array on the stack, by vectors.
template <class E>
CINCH_CALL Lanes<E> local_lanes(const E* from) {
  Lanes<E> x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
template <class E>
CINCH_CALL void set_local_lanes(E* to, Lanes<E> x) {
  __builtin_memcpy(to, &x, sizeof x);
}

}  // namespace cinch
