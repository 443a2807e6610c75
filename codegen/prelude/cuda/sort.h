// sort.h: stable order of the elements of a row. Needs storage.h.
//
// Merge sort by ranks: runs double in every pass, and each element finds its place by counting, in
// the run beside its own, what stands before it. Any number of threads; the same result as any
// other stable sort.

namespace cinch {

// Does a stand strictly before b? NaN comes last in either direction; -0 equals +0.
template <class T>
CINCH_FN bool sorts_before(T a, T b, bool descending) {
  if constexpr (lang::kIsFloat<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  return descending ? b < a : a < b;
}

// Of the sorted run order[0 .. len): how many elements stand before `key`; with `ties`, equal ones
// too.
template <class S>
CINCH_FN u64 count_before(const u8* keys, i64 begin, const u32* order, u64 len,
                          typename S::Compute key, bool ties, bool descending) {
  u64 low = 0, high = len;
  while (low < high) {
    const u64 middle = low + (high - low) / 2;
    const auto other = load_one<S>(keys, begin + order[middle]);
    const bool is_before =
        ties ? !sorts_before(key, other, descending) : sorts_before(other, key, descending);
    if (is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class S, u32 Warps>
CINCH_FN void merge_runs(Team<Warps> team, const u8* keys, i64 begin, u64 len, u64 width,
                         const u32* from, u32* to, bool descending) {
  for (u64 i = team.rank; i < len; i += Team<Warps>::kThreads) {
    const u64 first = i / (2 * width) * (2 * width);
    const u64 middle = first + width < len ? first + width : len;
    const u64 end = first + 2 * width < len ? first + 2 * width : len;
    const auto key = load_one<S>(keys, begin + from[i]);
    const bool is_left = i < middle;
    const u64 other = is_left ? middle : first;
    const u64 other_len = is_left ? end - middle : middle - first;
    const u64 before =
        count_before<S>(keys, begin, from + other, other_len, key, !is_left, descending);
    to[is_left ? i + before : i - (middle - first) + before] = from[i];
  }
  team.sync();
}

// order[begin .. begin + len) becomes the stable order of keys[begin .. begin + len), relative to
// begin; `scratch` has the same place for as many.
template <class S, u32 Warps>
CINCH_FN void argsort_row(Team<Warps> team, const u8* keys, u8* order_bytes, u8* scratch_bytes,
                          i64 begin, i64 signed_len, bool descending) {
  const u64 len = signed_len > 0 ? u64(signed_len) : 0u;
  u32* const order = reinterpret_cast<u32*>(order_bytes) + begin;
  u32* const scratch = reinterpret_cast<u32*>(scratch_bytes) + begin;
  u32 passes = 0;
  while ((1ull << passes) < len) ++passes;
  // Passes alternate between the two; the last one ends in `order`.
  u32* from = passes % 2 == 0 ? order : scratch;
  u32* to = passes % 2 == 0 ? scratch : order;
  team.sync();
  for (u64 i = team.rank; i < len; i += Team<Warps>::kThreads) from[i] = u32(i);
  team.sync();
  for (u64 width = 1; width < len; width *= 2) {
    merge_runs<S>(team, keys, begin, len, width, from, to, descending);
    u32* const swapped = from;
    from = to;
    to = swapped;
  }
}

}  // namespace cinch
