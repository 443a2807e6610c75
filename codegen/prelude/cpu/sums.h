// sums.h: running sums of integers and counts of lanes along a group. Needs vectors.h.

namespace cinch {

// Each lane plus all lanes before it.
template <int Distance = 1, class V>
CINCH_CALL V sum_lanes_so_far(V x) {
  if constexpr (Distance == W) {
    return x;
  } else {
    return sum_lanes_so_far<2 * Distance>(lang::add(x, lanes_up<Distance>(x)));
  }
}
// The running sum of a group, W elements at a time, from 0. The total depends only on its own
// vector's sum of lanes.
template <class E>
struct RunningSum {
  E total;
  CINCH_MEMBER Lanes<E> take(Lanes<E> x, Truth live, bool exclusive) {
    const Lanes<E> part = op_select(live, x, Lanes<E>(E(0)));
    return joined(part, sum_lanes_so_far(part), exclusive);
  }
  // The same for numbers whose sum over a vector fits 32 bits.
  CINCH_MEMBER Lanes<E> take_small(Lanes<u32> x, Truth live, bool exclusive) {
    const Lanes<u32> part = op_select(live, x, Lanes<u32>(0));
    const Lanes<u32> so_far = sum_lanes_so_far(part);
    return joined(lang::convert<E>(part), lang::convert<E>(so_far), exclusive);
  }
  CINCH_MEMBER Lanes<E> joined(Lanes<E> part, Lanes<E> so_far, bool exclusive) {
    const Lanes<E> sums = lang::add(so_far, wide<E>(total));
    total = lang::add(total, so_far[W - 1]);
    return exclusive ? lang::sub(sums, part) : sums;
  }
};

// The running count of true lanes. The total does not depend on the lanes' own counts, which are
// often unused.
template <class E>
struct RunningCount {
  E total;
  E before;  // the total before this vector
  CINCH_MEMBER Lanes<E> take(Truth part, bool exclusive) {
    before = total;
    const u32 bits = bits_of_truth(part);
    if (bits == 0) return wide<E>(before);
    total = E(total + E(__builtin_popcount(bits)));
    const Lanes<E> ones = truth_to<E>(part);
    const Lanes<E> sums = lang::add(sum_lanes_so_far(ones), wide<E>(before));
    return exclusive ? lang::sub(sums, ones) : sums;
  }
};

// Notes which vectors of a tile have a true lane, so that a later pass over the tile skips the
// others. Every vector must be noted, in ascending order.
struct TileHits {
  LaneWord lanes[kTile / W];

  CINCH_MEMBER void note(u32 i, Truth part) { lanes[i / W] = LaneWord(bits_of_truth(part)); }
  CINCH_MEMBER Truth noted(u32 i) const { return truth_of_bits(lanes[i / W]); }
  // The first element, from i on, of a vector that has a true lane. At least `len` if none has.
  CINCH_MEMBER u32 next(u32 i, u32 len) const {
    constexpr u32 kVectors = sizeof(u64) / sizeof(LaneWord);
    while (i < len) {
      u64 some = 1;
      // Only vectors before `len` are noted.
      const bool is_noted = i / W % kVectors == 0 && i + W * (kVectors - 1) < len;
      if (is_noted) __builtin_memcpy(&some, lanes + i / W, sizeof some);
      if (some == 0) {
        i += W * kVectors;
      } else if (lanes[i / W] == 0) {
        i += W;
      } else {
        break;
      }
    }
    return i;
  }
};

}  // namespace cinch
