// largest.h: the largest keys of a row in a local array. Needs scan.h.

namespace cinch {

CINCH_HELPER void mark_largest(LocalArray<u32>& x, u32 len, u32 k);

#if CINCH_HELPERS != 1
constexpr u32 kRowParts = 64;

// How many of `len` keys hold. Reads whole vectors.
template <class Holds>
CINCH_CALL u32 count_keys(const u32* keys, u32 len, const Holds& holds) {
  u32 num = 0;
#pragma clang loop unroll_count(4)
  for (u32 i = 0; i < len; i += W) {
    num += u32(__builtin_popcount(bits_of_truth(holds(local_lanes(keys + i)))));
  }
  return num;
}

// A number that exactly k of the keys reach or, if equal keys leave none, the greatest that more
// reach, by bisection between the least and the largest key. Returns a lower number if `halves`
// steps are not enough. Reads whole vectors.
CINCH_CALL u32 reached_by(const u32* keys, u32 len, u32 k, u32 halves) {
  Lanes<u32> least_keys = local_lanes(keys), largest_keys = least_keys;
  for (u32 i = W; i < len; i += W) {
    least_keys = lang::min(least_keys, local_lanes(keys + i));
    largest_keys = lang::max(largest_keys, local_lanes(keys + i));
  }
  u32 low = least_keys[0], high = largest_keys[0];
#pragma unroll
  for (int i = 1; i < W; ++i) {
    low = least(low, least_keys[i]);
    high = largest_keys[i] > high ? largest_keys[i] : high;
  }
#pragma clang loop unroll(disable)
  for (; low < high && halves != 0; --halves) {
    const u32 tried = high - (high - low) / 2;
    const auto reaches = [&](Lanes<u32> some)
                             __attribute__((always_inline)) { return Truth(some >= wide(tried)); };
    const u32 count = count_keys(keys, len, reaches);
    if (count == k) return tried;
    const bool is_reached = count > k;
    low = is_reached ? tried : low;
    high = is_reached ? high : tried - 1;
  }
  return low;
}

// A number that at least k keys reach, but few others: nearly the k-th of the largest keys of the
// row's parts, where k is less than their number. 0 if the row has fewer parts. Reads whole
// vectors.
CINCH_CALL u32 bound_of_largest(const LocalArray<u32>& x, u32 len, u32 k) {
  constexpr u32 kHalves = 7;
  if (len < kRowParts) return 0;
  u32 most[kRowParts];
#pragma unroll
  for (u32 i = 0; i < kRowParts; i += W) {
    Lanes<u32> part = x.lanes(i);
#pragma clang loop unroll(disable)
    for (u32 from = i + kRowParts; from < len; from += kRowParts) {
      part = lang::max(part, x.lanes(from));
    }
    set_local_lanes(most + i, part);
  }
  return reached_by(most, kRowParts, k, kHalves);
}

// Lists the places of the keys that reach the bound, and returns their number. Finds the vectors
// with such keys first, to avoid a branch for each vector.
CINCH_CALL u32 list_reaching(const LocalArray<u32>& x, u32 len, u32 bound, u32* places) {
  const auto reaches = [&](u32 i) __attribute__((always_inline)) {
    return Truth(x.lanes(i) >= wide(bound)) & first_lanes(least(len - i, u32(W)));
  };
  u32 count = 0;
#pragma clang loop unroll(disable)
  for (u32 begin = 0; begin < len; begin += 64 * W) {
    u64 hits = 0;
#pragma clang loop unroll_count(4)
    for (u32 i = 0; i < 64 && begin + i * W < len; ++i) {
      hits |= u64(any_lane(reaches(begin + i * W))) << i;
    }
#pragma clang loop unroll(disable)
    for (; hits != 0; hits &= hits - 1) {
      const u32 i = begin + u32(__builtin_ctzll(hits)) * W;
      const Truth taken = reaches(i);
      store_kept_lanes<u32>((u8*)places, count, lane_numbers() + wide(i), taken);
      count += u32(__builtin_popcount(bits_of_truth(taken)));
    }
  }
  return count;
}

// Keys are in the order of their places. Is the key `of` among the k largest, where the first of
// equal keys wins? Reads whole vectors.
CINCH_CALL bool is_among_largest(const u32* keys, u32 count, u32 of, u32 k) {
  const Lanes<u32> own = wide(keys[of]);
  u32 before = 0;
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < count; i += W) {
    const Lanes<u32> some = local_lanes(keys + i);
    const Truth is_first = Truth(some == own) & Truth(lane_numbers() + wide(i) < wide(of));
    before += u32(__builtin_popcount(bits_of_truth(Truth(some > own) | is_first)));
  }
  return before < k;
}

// Marks the k largest of the listed keys, which are more than k.
CINCH_CALL void mark_some(LocalArray<u32>& x, const u32* keys, const u32* places, u32 count,
                          u32 k) {
  if (count <= kRowParts) {
    for (u32 i = 0; i < count; ++i) x.at[places[i]] = is_among_largest(keys, count, i, k) ? 1 : 0;
    return;
  }
  const u32 end = (count + W - 1) / W * W;
  const u32 least = reached_by(keys, end, k, 32);
  u32 equals = k - count_keys(keys, end, [&](Lanes<u32> some) __attribute__((always_inline)) {
                 return Truth(some > wide(least));
               });
  for (u32 i = 0; i < count; ++i) {
    const bool is_equal = keys[i] == least && equals > 0;
    x.at[places[i]] = keys[i] > least || is_equal ? 1 : 0;
    equals -= is_equal ? 1 : 0;
  }
}

// Marks the k largest of a whole row. Reads and writes whole vectors.
CINCH_CALL void mark_many(LocalArray<u32>& x, u32 end, u32 k) {
  const u32 least = reached_by(x.at, end, k, 32);
  u32 equals = k - count_keys(x.at, end, [&](Lanes<u32> some) __attribute__((always_inline)) {
                 return Truth(some > wide(least));
               });
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < end; i += W) {
    const Lanes<u32> some = x.lanes(i);
    LaneWord first = LaneWord(bits_of_truth(Truth(some == wide(least))));
    u32 count = u32(__builtin_popcount(first));
    for (; count > equals; --count) first ^= LaneWord(1u << (31 - __builtin_clz(u32(first))));
    equals -= count;
    const Truth taken = Truth(some > wide(least)) | truth_of_bits(first);
    x.set(i, op_select(taken, wide(1u), wide(0u)));
  }
}

// In place: 1 for the k largest of `len` keys, 0 for the others. The first of equal keys wins.
CINCH_HELPER void mark_largest(LocalArray<u32>& x, u32 len, u32 k) {
  constexpr u32 kFew = 16;  // for more, a bound leaves too many keys to list
  const u32 end = (len + W - 1) / W * W;
  x.set(end - W, op_select(first_lanes(len - (end - W)), x.lanes(end - W), wide(0u)));
  if (k > kFew) return mark_many(x, end, k);
  u32 keys[kTile + W], places[kTile + W];
  const u32 count = k == 0 ? 0 : list_reaching(x, len, bound_of_largest(x, end, k), places);
#pragma clang loop unroll_count(2)
  for (u32 i = 0; i < count; ++i) keys[i] = x.at[places[i]];
  set_local_lanes(keys + count, wide(0u));
#pragma clang loop unroll_count(4)
  for (u32 i = 0; i < end; i += W) x.set(i, wide(0u));
  if (count > k) return mark_some(x, keys, places, count, k);
  for (u32 i = 0; i < count; ++i) x.at[places[i]] = 1;
}
#endif

}  // namespace cinch
