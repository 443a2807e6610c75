// warp.h: the first part of the CUDA prelude: where a thread is, teams of threads, shuffles, status
// words. Needs scalar_ops.h.
//
// A warp of 32 lanes takes a tile of 1024 elements, which has 8 rows of 128. Lane l owns columns 4l
// … 4l + 3. So a lane accesses a row by 16 bytes at once, and the tree over columns (64, 32, … 1
// apart) takes eight shuffles (reduce.h). All threads of a team must call every function here.

#define CINCH_FN static __device__ __forceinline__
// The four neighbouring elements that a lane owns in a row.
#define CINCH_EACH _Pragma("unroll") for (u32 c = 0; c < 4; ++c)

namespace cinch {

constexpr u32 kAllLanes = 0xffffffffu;
constexpr u32 kTileElems = 1024;
constexpr u32 kRowElems = 128;

// 16 bytes that are loaded or stored at once.
template <class T, int N>
struct __align__(sizeof(T) * N) Pack {
  T at[N];
};

// Threads that work on one group: a warp, or the whole block.
template <u32 Warps>
struct Team {
  u32 rank;  // of this thread in the team
  static constexpr u32 kWarps = Warps;
  static constexpr u32 kThreads = 32 * Warps;
  __device__ __forceinline__ void sync() const {
    if constexpr (Warps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

CINCH_FN u32 lane_index() {
  return threadIdx.x & 31u;
}
CINCH_FN u32 warp_index() {
  return threadIdx.x >> 5;
}

// Shuffles of every compute type. Emitted tuples add overloads.
template <class T>
CINCH_FN T lane_xor(T x, u32 bits) {
  return __shfl_xor_sync(kAllLanes, x, int(bits));
}
CINCH_FN bool lane_xor(bool x, u32 bits) {
  return __shfl_xor_sync(kAllLanes, int(x), int(bits)) != 0;
}
template <class T>
CINCH_FN T lane_get(T x, u32 lane) {
  return __shfl_sync(kAllLanes, x, int(lane));
}

// The smaller of a bound and a signed number. A negative number counts as 0.
CINCH_FN u64 at_most(u64 bound, i64 x) {
  return x <= 0 ? 0u : (u64(x) < bound ? u64(x) : bound);
}

// How many of a lane's four elements from place `first` on are before `end`.
CINCH_FN u32 live_elems(u32 first, u32 end) {
  return first >= end ? 0u : (end - first < 4u ? end - first : 4u);
}
// The same with a limit that may be negative or larger than any place.
CINCH_FN u32 live_elems(u32 live, u32 first, i64 limit) {
  const i64 rest = limit - i64(first);
  return rest >= i64(live) ? live : (rest <= 0 ? 0u : u32(rest));
}

// How many of a lane's elements are true.
CINCH_FN u32 count_four(u32 live, const bool (&x)[4]) {
  u32 mask = 0;
  CINCH_EACH mask |= u32(c < live && x[c]) << c;
  return u32(__popc(mask));
}

template <class Item>
CINCH_FN void fill_columns(Item (&columns)[4], Item empty) {
  CINCH_EACH columns[c] = empty;
}

// One of four, by a number that is not known at compile time, without putting them into memory.
template <class T>
CINCH_FN T one_of(const T (&x)[4], u32 which) {
  const T low = (which & 1u) != 0u ? x[1] : x[0], high = (which & 1u) != 0u ? x[3] : x[2];
  return (which & 2u) != 0u ? high : low;
}

// Is it true for an element of the warp's row?
CINCH_FN bool holds_in_row(const bool (&x)[4]) {
  return __any_sync(kAllLanes, x[0] || x[1] || x[2] || x[3]) != 0;
}

// status[0] bit 0: a gradient value was not finite.
CINCH_FN void flag_nonfinite(u32* status) {
  atomicOr(status, 1u);
}

// `seen` stays zero while all numbers are finite. The first other number makes it NaN.
CINCH_FN void note_nonfinite(f32& seen, f32 x) {
#if defined(CINCH_LANG_PORTABLE_ONLY)
  seen += x * 0.0f;
#else
  seen = lang::fma(x, 0.0f, seen);
#endif
}
CINCH_FN void note_nonfinite(f32& seen, f64 x) {
  seen += f32(x - x);
}

// status[1]: 1 + the lowest index of a failed check, 0 for none.
CINCH_FN void fail_call(u32* status, u32 message) {
  const u32 code = message + 1u;
  u32 seen = atomicCAS(status + 1, 0u, code);
  while (seen != 0u && seen > code) {
    const u32 before = atomicCAS(status + 1, seen, code);
    if (before == seen) break;
    seen = before;
  }
}

// A block's own histogram: cleared at first, added to the one in memory at the end.
template <u32 Warps>
CINCH_FN void clear_bins(Team<Warps> block, u32* own, u32 num_bins) {
  for (u32 i = block.rank; i < num_bins; i += Team<Warps>::kThreads) own[i] = 0u;
}
template <u32 Warps>
CINCH_FN void add_bins(Team<Warps> block, u32* to, const u32* own, u32 num_bins) {
  for (u32 i = block.rank; i < num_bins; i += Team<Warps>::kThreads) {
    if (own[i] != 0u) atomicAdd(to + i, own[i]);
  }
}

}  // namespace cinch
