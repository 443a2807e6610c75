// sort.h: the stable order of the elements of a row. Needs storage.h.
//
// A radix sort from the lowest digit up. In a pass, each warp of the team counts the digits of its
// part of the row; parts are in order. One warp turns all counts into places. Then each warp moves
// its part in order, lanes of the same digit one after the other. A pass moves nothing if the whole
// row has the same digit. The result is that of any other stable sort, with any number of threads.

namespace cinch {

constexpr u32 kDigitBits = 8, kDigits = 1u << kDigitBits;
// Shared words for each warp of a team: counts, which become places, and one more.
constexpr u32 kSortWords = kDigits + 1u;

template <class T>
using SortBits = typename RawOf<sizeof(T) <= 4 ? 32 : 64>::Type;

// Bits whose unsigned order is the order of the elements. NaN is last in either direction; -0
// equals +0.
template <class T>
CINCH_FN SortBits<T> sort_bits(T x, bool descending) {
  using Bits = SortBits<T>;
  constexpr Bits kTop = Bits(1) << (8 * sizeof(Bits) - 1);
  Bits bits = Bits(x);
  if constexpr (lang::kIsFloat<T>) {
    if (x != x) return ~Bits(0);
    bits = x == T(0) ? Bits(0) : Bits(lang::bits_of(x));
    bits = (bits & kTop) != 0u ? ~bits : bits | kTop;
  } else if constexpr (T(-1) < T(0)) {
    bits ^= kTop;
  }
  return descending ? Bits(~bits) : bits;
}

// The part of a row that a warp sorts, as one pass sees it.
template <class S>
struct SortPass {
  const u8* keys;
  i64 begin;
  const u32* from;
  u32* to;
  u32 shift;
  bool descending;

  __device__ __forceinline__ u32 digit(u32 element) const {
    const auto key = load_one<S>(keys, begin + i64(element));
    return u32(sort_bits(key, descending) >> shift) & (kDigits - 1u);
  }
};

template <class S>
CINCH_FN void count_digits(const SortPass<S>& pass, u64 first, u64 end, u32* counts) {
#pragma unroll 1
  for (u32 d = lane_index(); d < kDigits; d += 32u) counts[d] = 0u;
  __syncwarp();
#pragma unroll 1
  for (u64 i = first + lane_index(); i < end; i += 32u) {
    atomicAdd(counts + pass.digit(pass.from[i]), 1u);
  }
}

// One warp turns the counts of all parts into the places of the elements. Returns whether all `len`
// elements have the same digit.
template <u32 Parts>
CINCH_FN bool place_digits(u32* counts, u64 len) {
  constexpr u32 kOwn = kDigits / 32u;  // digits of a lane
  const u32 first = kOwn * lane_index();
  u32 sum = 0;
  bool is_one = false;
#pragma unroll 1
  for (u32 d = first; d < first + kOwn; ++d) {
    u32 total = 0;
    for (u32 part = 0; part < Parts; ++part) total += counts[part * kSortWords + d];
    is_one = is_one || total == len;
    sum += total;
  }
  u32 upto = sum;
#pragma unroll
  for (u32 distance = 1; distance < 32u; distance *= 2) {
    const u32 other = __shfl_up_sync(kAllLanes, upto, distance);
    if (lane_index() >= distance) upto += other;
  }
  u32 place = upto - sum;
#pragma unroll 1
  for (u32 d = first; d < first + kOwn; ++d) {
    for (u32 part = 0; part < Parts; ++part) {
      u32& count = counts[part * kSortWords + d];
      const u32 before = place;
      place += count;
      count = before;
    }
  }
  return __any_sync(kAllLanes, is_one) != 0;
}

template <class S>
CINCH_FN void move_part(const SortPass<S>& pass, u64 first, u64 end, u32* places) {
#pragma unroll 1
  for (u64 row = first; row < end; row += 128u) {
    u32 elements[4], digits[4];
    CINCH_EACH {
      const u64 i = row + 32u * c + lane_index();
      elements[c] = i < end ? pass.from[i] : 0u;
      digits[c] = i < end ? pass.digit(elements[c]) : kDigits;
    }
    CINCH_EACH {
      const u32 peers = __match_any_sync(kAllLanes, digits[c]);
      const u32 rank = u32(__popc(peers & ((1u << lane_index()) - 1u)));
      const bool is_there = digits[c] < kDigits;
      const u32 place = is_there ? places[digits[c]] : 0u;
      __syncwarp();
      if (is_there && rank == 0u) places[digits[c]] = place + u32(__popc(peers));
      __syncwarp();
      if (is_there) pass.to[place + rank] = elements[c];
    }
  }
}

// order[begin .. begin + len) becomes the stable order of keys[begin .. begin + len), relative to
// begin. `scratch` has room for as many at the same place. `shared`: kSortWords for each warp of
// the team.
template <class S, u32 Warps>
CINCH_FN void argsort_row(Team<Warps> team, const u8* keys, u8* order_bytes, u8* scratch_bytes,
                          i64 begin, i64 signed_len, bool descending, u32* shared) {
  using Bits = SortBits<typename S::Compute>;
  const u64 len = signed_len > 0 ? u64(signed_len) : 0u;
  u32* const order = reinterpret_cast<u32*>(order_bytes) + begin;
  u32* const scratch = reinterpret_cast<u32*>(scratch_bytes) + begin;
  const u32 part = Warps == 1 ? 0u : warp_index();
  const u64 each = (len + 32u * Warps - 1u) / (32u * Warps) * 32u;
  const u64 first = part * each < len ? part * each : len;
  const u64 end = first + each < len ? first + each : len;
  u32* const own = shared + part * kSortWords;
  u32* const is_sorted = shared + kDigits;  // behind the first part's counts
  SortPass<S> pass = {keys, begin, order, scratch, 0u, descending};
  team.sync();
  for (u64 i = team.rank; i < len; i += Team<Warps>::kThreads) order[i] = u32(i);
  team.sync();
#pragma unroll 1
  for (; len > 1u && pass.shift < 8 * sizeof(Bits); pass.shift += kDigitBits) {
    count_digits(pass, first, end, own);
    team.sync();
    if (part == 0u) {
      const bool is_one = place_digits<Warps>(shared, len);
      if (lane_index() == 0u) *is_sorted = is_one ? 1u : 0u;
    }
    team.sync();
    if (*is_sorted != 0u) continue;
    move_part(pass, first, end, own);
    team.sync();
    u32* const moved = pass.to;
    pass.to = pass.from == order ? order : scratch;
    pass.from = moved;
  }
  if (pass.from != order) {
    for (u64 i = team.rank; i < len; i += Team<Warps>::kThreads) order[i] = pass.from[i];
  }
  team.sync();
}

}  // namespace cinch
