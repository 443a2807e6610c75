// sort.h: the stable order of a row, by keys that order as the language says (NaN last, -0 equal to
// +0; descending keys are complemented, so ties keep their order, and NaN still stands last). Short
// rows by counting for each key those before it, others by radix, least significant byte first.
// Needs memory.h.

namespace cinch {

// Keys whose unsigned order is the language's.
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

// Below this, counting takes less time than the tables of the radix sort do.
constexpr u32 kCountedAtMost = 128;

// Biased: signed vectors compare in one instruction.
CINCH_CALL i32 signed_key(u32 key) {
  return i32(key ^ 0x80000000u);
}
CINCH_CALL i64 signed_key(u64 key) {
  return i64(key ^ 1ull << 63);
}

// place[i] becomes the number of keys that stand before keys[i]; whole vectors of both are there.
template <class Key>
static __attribute__((noinline, unused)) void count_before(const Key* keys, Key* place, u32 len) {
  using Keys = lang::Vec<Key, W>;
  Keys lane;
  for (u32 i = 0; i < u32(W); ++i) lane[i] = Key(i);
  for (u32 first = 0; first < len; first += W) {
    Keys own, count = {};
    __builtin_memcpy(&own, keys + first, sizeof own);
    const u32 end = first + W < len ? first + W : len;
    for (u32 j = 0; j < first; ++j) count -= keys[j] <= own;
    for (u32 j = first; j < end; ++j) {
      count -= (keys[j] < own) | ((keys[j] == own) & (Key(j - first) < lane));
    }
    for (u32 j = end; j < len; ++j) count -= keys[j] < own;
    __builtin_memcpy(place + first, &count, sizeof count);
  }
}

template <class Value>
CINCH_CALL void argsort_short_row(const Value& value, u32 len, bool descending, u8* order_to,
                                  u64 begin) {
  using Key = decltype(signed_key(sort_key(value(0), false)));
  Key keys[kCountedAtMost + W] = {}, place[kCountedAtMost + W];
  for (u32 i = 0; i < len; ++i) keys[i] = signed_key(sort_key(value(i), descending));
  count_before(keys, place, len);
  for (u32 i = 0; i < len; ++i) store_one<u32>(order_to, i64(begin) + i64(place[i]), i);
}

// order[0 … len - 1] becomes the places of the row's elements in their order. `value(i)` gives
// element i; scratch holds as many words. A byte on which all keys agree is skipped.
template <class Value>
static __attribute__((noinline, unused)) void argsort_row(const Value& value, u32 len,
                                                          bool descending, u8* order_to,
                                                          u8* scratch_to, u64 begin) {
  if (len <= kCountedAtMost) return argsort_short_row(value, len, descending, order_to, begin);
  using Key = decltype(sort_key(value(0), false));
  u8* from = order_to;
  u8* to = scratch_to;
  for (u32 i = 0; i < len; ++i) store_one<u32>(from, i64(begin + i), i);
  for (u32 shift = 0; shift < 8 * sizeof(Key); shift += 8) {
    u32 start[257] = {};
    for (u32 i = 0; i < len; ++i) ++start[(u8)(sort_key(value(i), descending) >> shift) + 1u];
    bool is_one_byte = false;
    for (u32 b = 0; b < 256; ++b) is_one_byte |= start[b + 1] == len;
    if (is_one_byte) continue;
    for (u32 b = 0; b < 256; ++b) start[b + 1] += start[b];
    for (u32 i = 0; i < len; ++i) {
      const u32 place = load_one<u32>(from, i64(begin + i));
      const u32 at = start[(u8)(sort_key(value(place), descending) >> shift)]++;
      store_one<u32>(to, i64(begin + at), place);
    }
    u8* const other = from;
    from = to;
    to = other;
  }
  if (from == order_to) return;
  for (u32 i = 0; i < len; ++i) {
    store_one<u32>(order_to, i64(begin + i), load_one<u32>(from, i64(begin + i)));
  }
}

}  // namespace cinch
