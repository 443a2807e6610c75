// sort.h: the stable order of a row, by keys in the language's order (NaN last, -0 equal to +0).
// Descending keys are complemented, so ties keep their order, and NaN is still last. For short
// rows, counts for each key how many are before it. Other rows are sorted by radix, least
// significant byte first. Needs memory.h.

namespace cinch {

// Keys whose unsigned order is the language's order.
CINCH_CALL u32 sort_key(f32 x, bool descending) {
  if (x != x) return ~0u;
  const u32 bits = lang::bits_of(x == 0 ? 0.0f : x);
  const u32 key = bits >> 31 ? ~bits : bits | 0x80000000u;
  return descending ? ~key : key;
}
CINCH_CALL u64 sort_key(f64 x, bool descending) {
  if (x != x) return ~0ull;
  const u64 bits = lang::bits_of(x == 0 ? 0.0 : x);
  const u64 key = bits >> 63 ? ~bits : bits | 1ull << 63;
  return descending ? ~key : key;
}
CINCH_CALL u32 sort_key(i32 x, bool descending) {
  const u32 key = u32(x) ^ 0x80000000u;
  return descending ? ~key : key;
}
CINCH_CALL u32 sort_key(u32 x, bool descending) {
  return descending ? ~x : x;
}
CINCH_CALL u64 sort_key(i64 x, bool descending) {
  const u64 key = u64(x) ^ 1ull << 63;
  return descending ? ~key : key;
}
CINCH_CALL u64 sort_key(u64 x, bool descending) {
  return descending ? ~x : x;
}
CINCH_CALL u32 sort_key(bool x, bool descending) {
  return u32(x != descending);
}

// Below this length, counting takes less time than the radix sort's tables.
constexpr u32 kCountedAtMost = 128;

// Signed, because one instruction compares signed vectors.
CINCH_CALL i32 signed_key(u32 key) {
  return i32(key ^ 0x80000000u);
}
CINCH_CALL i64 signed_key(u64 key) {
  return i64(key ^ 1ull << 63);
}
template <class Key>
CINCH_CALL Key largest_key() {
  return Key(~(Key(1) << (8 * sizeof(Key) - 1)));
}

template <class Keys>
CINCH_CALL u32 count_lanes_of(Keys truth) {
  const LaneBits bits = __builtin_convertvector(truth, LaneBits);
  return u32(__builtin_popcount(u32(__builtin_bit_cast(LaneWord, bits)) & ((1u << W) - 1)));
}

// Calls store(place, i) for each of `len` keys, where `place` is the number of keys before key i.
// The keys behind the last one, up to the end of its vector, must be the largest possible.
template <class Key, class Store>
CINCH_CALL void order_by_counting(const Key* keys, u32 len, const Store& store) {
  using Keys = lang::Vec<Key, W>;
  constexpr u32 kAtOnce = 4;
  Keys lane;
#pragma unroll
  for (int l = 0; l < W; ++l) lane[l] = Key(l);
#pragma clang loop unroll(disable)
  for (u32 first = 0; first < len; first += kAtOnce) {
    const u32 own = first / W * W;
    u32 count[kAtOnce] = {};
    const auto take = [&](u32 from, const auto& stands_before) __attribute__((always_inline)) {
      Keys others;
      __builtin_memcpy(&others, keys + from, sizeof others);
#pragma unroll
      for (u32 i = 0; i < kAtOnce; ++i) {
        count[i] += count_lanes_of(stands_before(others, keys[first + i], Key(first + i - own)));
      }
    };
#pragma clang loop unroll(disable)
    for (u32 from = 0; from < own; from += W) {
      take(from, [](Keys others, Key key, Key) { return others <= key; });
    }
    take(own, [&](Keys others, Key key, Key place) {
      return (others < key) | ((others == key) & (lane < place));
    });
#pragma clang loop unroll(disable)
    for (u32 from = own + W; from < len; from += W) {
      take(from, [](Keys others, Key key, Key) { return others < key; });
    }
    const u32 num = least(kAtOnce, len - first);
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      if (i < num) store(count[i], first + i);
    }
  }
}

// At least `front` keys are not larger than the result: it is the smallest key of a lane that has
// `front` - 1 of the lanes' smallest keys before it. `front` <= W. Reads whole vectors.
template <class Key>
CINCH_CALL Key bound_of_front(const Key* keys, u32 len, u32 front) {
  using Keys = lang::Vec<Key, W>;
  Keys least_keys;
  __builtin_memcpy(&least_keys, keys, sizeof least_keys);
#pragma clang loop unroll(disable)
  for (u32 from = W; from < len; from += W) {
    Keys others;
    __builtin_memcpy(&others, keys + from, sizeof others);
    least_keys = others < least_keys ? others : least_keys;
  }
  alignas(64) Key of_lanes[W];
  __builtin_memcpy(of_lanes, &least_keys, sizeof least_keys);
  Key bound = of_lanes[0];
  order_by_counting(of_lanes, u32(W), [&](u32 place, u32 i) __attribute__((always_inline)) {
    bound = place == front - 1 ? of_lanes[i] : bound;
  });
  return bound;
}

// Finds the first `front` places of the order. Most keys are above a bound and are left out.
template <class Key>
CINCH_CALL void order_front(const Key* keys, u32 len, u32 front, u8* order_to, u64 begin) {
  using Keys = lang::Vec<Key, W>;
  const Key bound = bound_of_front(keys, len, front);
  Key some[kCountedAtMost + W];
  u32 places[kCountedAtMost + W];
  u32 count = 0;
#pragma clang loop unroll(disable)
  for (u32 from = 0; from < len; from += W) {
    Keys own;
    __builtin_memcpy(&own, keys + from, sizeof own);
    const Truth taken =
        __builtin_convertvector(own <= bound, Truth) & first_lanes(least(u32(W), len - from));
    store_kept_lanes<Key>((u8*)some, count, own, taken);
    store_kept_lanes<u32>((u8*)places, count, lane_numbers() + wide(from), taken);
    count += u32(__builtin_popcount(bits_of_truth(taken)));
  }
  for (u32 i = count; i % W != 0; ++i) some[i] = largest_key<Key>();
  order_by_counting(some, count, [&](u32 place, u32 i) __attribute__((always_inline)) {
    if (place < front) store_one<u32>(order_to, i64(begin) + i64(place), places[i]);
  });
}

// `front` as in argsort_row.
template <class Value>
CINCH_CALL void argsort_short_row(const Value& value, u32 len, bool descending, u32 front,
                                  u8* order_to, u64 begin) {
  using Key = decltype(signed_key(sort_key(value(0), false)));
  // Stores whole vectors. A load must wait for a vector that was stored in parts.
  alignas(64) Key keys[kCountedAtMost];
  u32 first = 0;
#pragma clang loop unroll(disable)
  for (; first + W <= len; first += W) {
    lang::Vec<Key, W> some;
#pragma unroll
    for (int l = 0; l < W; ++l) {
      some[l] = signed_key(sort_key(value(first + u32(l)), descending));
    }
    __builtin_memcpy(keys + first, &some, sizeof some);
  }
#pragma clang loop unroll(disable)
  for (u32 i = first; i < len; ++i) keys[i] = signed_key(sort_key(value(i), descending));
  for (u32 i = len; i % W != 0; ++i) keys[i] = largest_key<Key>();
  if (front != 0 && front <= u32(W) && 2 * front < len) {
    return order_front(keys, len, front, order_to, begin);
  }
  order_by_counting(keys, len, [&](u32 place, u32 i) __attribute__((always_inline)) {
    store_one<u32>(order_to, i64(begin) + i64(place), i);
  });
}

// Digits of a radix sort. Long rows take wide digits, whose tables are short beside the row.
template <class Key, u32 Bits>
struct KeyDigits {
  static constexpr u32 kBins = 1u << Bits;
  static constexpr u32 kNum = (8 * sizeof(Key) + Bits - 1) / Bits;
  u32 start[kNum][kBins];
  u32 used[kNum];  // the digits in which keys differ
  u32 num_used;

  static CINCH_MEMBER u32 of(Key key, u32 digit) {
    return u32(key >> (digit * Bits)) & (kBins - 1);
  }
  template <class KeyAt>
  CINCH_MEMBER void count(const KeyAt& key_at, u32 len) {
    for (u32 d = 0; d < kNum; ++d) {
      for (u32 b = 0; b < kBins; ++b) start[d][b] = 0;
    }
    for (u32 i = 0; i < len; ++i) {
      const Key key = key_at(i);
#pragma unroll
      for (u32 d = 0; d < kNum; ++d) ++start[d][of(key, d)];
    }
    num_used = 0;
    const Key any_key = key_at(0);
    for (u32 d = 0; d < kNum; ++d) {
      if (start[d][of(any_key, d)] == len) continue;
      used[num_used++] = d;
      u32 before = 0;
      for (u32 b = 0; b < kBins; ++b) {
        const u32 num = start[d][b];
        start[d][b] = before;
        before += num;
      }
    }
  }
};

// Sorts by radix. Each pass reads keys by the places that the pass before found.
template <u32 Bits, class Value>
CINCH_CALL void argsort_by_radix(const Value& value, u32 len, bool descending, u8* order_to,
                                 u8* scratch_to, u64 begin) {
  using Key = decltype(sort_key(value(0), false));
  const auto key_at = [&](u32 i)
                          __attribute__((always_inline)) { return sort_key(value(i), descending); };
  KeyDigits<Key, Bits> digits;
  digits.count(key_at, len);
  if (digits.num_used == 0) {
    for (u32 i = 0; i < len; ++i) store_one<u32>(order_to, i64(begin + i), i);
    return;
  }
  // The last pass writes the order itself.
  u8* from = digits.num_used % 2 == 0 ? order_to : scratch_to;
  u8* to = digits.num_used % 2 == 0 ? scratch_to : order_to;
  for (u32 pass = 0; pass < digits.num_used; ++pass) {
    const u32 digit = digits.used[pass];
    u32* const start = digits.start[digit];
    const auto move = [&](u32 place) __attribute__((always_inline)) {
      store_one<u32>(to, i64(begin + start[digits.of(key_at(place), digit)]++), place);
    };
    if (pass == 0) {
      for (u32 i = 0; i < len; ++i) move(i);
    } else {
      for (u32 i = 0; i < len; ++i) move(load_one<u32>(from, i64(begin + i)));
    }
    u8* const other = from;
    from = to;
    to = other;
  }
}

// Long rows: a pass moves keys with their places, so that it reads both in order. The scratch holds
// two arrays of pairs.
template <u32 Bits, class Value>
CINCH_CALL void argsort_pairs(const Value& value, u32 len, bool descending, u8* order_to,
                              u8* scratch_to, u64 begin) {
  const auto key_at = [&](u32 i)
                          __attribute__((always_inline)) { return sort_key(value(i), descending); };
  KeyDigits<u32, Bits> digits;
  digits.count(key_at, len);
  if (digits.num_used == 0) {
    for (u32 i = 0; i < len; ++i) store_one<u32>(order_to, i64(begin + i), i);
    return;
  }
  u8* const pairs = scratch_to + begin * 16;
  u8* from = pairs + u64(len) * 8;
  u8* to = pairs;
  for (u32 pass = 0; pass < digits.num_used; ++pass) {
    const u32 digit = digits.used[pass];
    u32* const start = digits.start[digit];
    const auto move = [&](u32 key, u32 place) __attribute__((always_inline)) {
      const u32 at = start[digits.of(key, digit)]++;
      if (pass + 1 == digits.num_used) return store_one<u32>(order_to, i64(begin + at), place);
      store_one<u64>(to, i64(at), u64(key) << 32 | place);
    };
    if (pass == 0) {
      for (u32 i = 0; i < len; ++i) move(key_at(i), i);
    } else {
      for (u32 i = 0; i < len; ++i) {
        const u64 pair = load_one<u64>(from, i64(i));
        move(u32(pair >> 32), u32(pair));
      }
    }
    u8* const other = from;
    from = to;
    to = other;
  }
}

// order[0 … len - 1] become the places of the row's elements in their order. `value(i)` returns
// element i; scratch holds as many words, four times as many if rows can be longer than kPairsAbove
// and keys have 32 bits. Skips digits that are equal in all keys. If `front` is
// not 0, only so many places of the order are needed, and the others may hold anything.
template <class Value>
static __attribute__((noinline, unused)) void argsort_row(const Value& value, u32 len,
                                                          bool descending, u32 front, u8* order_to,
                                                          u8* scratch_to, u64 begin) {
  if (len <= kCountedAtMost) {
    return argsort_short_row(value, len, descending, front, order_to, begin);
  }
  constexpr u32 kPairsAbove = 4096;
  if (len <= kPairsAbove)
    return argsort_by_radix<8>(value, len, descending, order_to, scratch_to, begin);
  if constexpr (sizeof(sort_key(value(0), false)) == 4) {
    argsort_pairs<11>(value, len, descending, order_to, scratch_to, begin);
  } else {
    argsort_by_radix<11>(value, len, descending, order_to, scratch_to, begin);
  }
}

}  // namespace cinch
