// ordered.h: data that tasks share: sums over all groups before (look-back), counts of a histogram,
// status words, counted bytes. Needs memory.h.

namespace cinch {

#if defined(__x86_64__)
CINCH_CALL void pause_core() {
  __builtin_ia32_pause();
}
CINCH_CALL void yield_core() {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(24l) : "rcx", "r11", "memory");
}
#elif defined(__aarch64__)
CINCH_CALL void pause_core() {
  __asm__ volatile("yield");
}
CINCH_CALL void yield_core() {
  register long call __asm__("x8") = 124;
  register long result __asm__("x0");
  __asm__ volatile("svc 0" : "=r"(result) : "r"(call) : "memory");
}
#endif
CINCH_CALL void pause_waiting(u32& rounds) {
  pause_core();
  // Lets another task have this core: sched_yield of Linux.
  if (++rounds % 1024 == 0) yield_core();
}
CINCH_CALL u64 wait_for_word(const u64* word) {
  u32 rounds = 0;
  for (;;) {
    const u64 value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (value != 0) return value;
    pause_waiting(rounds);
  }
}
// The sum of all groups before a chunk of `len` groups, whose own sum is `part`.
//
// There are two words for each group. A chunk uses the words of its last group. Chunks start in
// ascending order, and each waits only for chunks before it, which never wait for later ones. So
// every wait ends.
//
// For u32, a chunk publishes its part first. Then it looks back and adds parts of the chunks
// before, until it finds a chunk that knows its whole sum. So no chunk waits for a chain of others.
// First word: bit 63, the chunk's length in bits 32 to 47, its part below; second word: bit 63, and
// the sum up to and with this chunk. For u64, the part does not fit beside its length: the first
// word becomes 1 when the second word holds the sum.
template <class E>
CINCH_CALL E sum_before(u8* state, u64 first_group, u32 len, E part) {
  u64* const words = (u64*)state;
  u64* const own = words + 2 * (first_group + len - 1);
  constexpr u64 kIsThere = 1ull << 63;
  E before = 0;
  if constexpr (sizeof(E) == 4) {
    __atomic_store_n(own, kIsThere | u64(len) << 32 | part, __ATOMIC_RELEASE);
    for (u64 end = first_group; end != 0;) {
      const u64 sum = __atomic_load_n(words + 2 * end - 1, __ATOMIC_ACQUIRE);
      if (sum != 0) {
        before = before + E(sum);
        break;
      }
      const u64 there = wait_for_word(words + 2 * end - 2);
      before = before + E(there);
      end -= there >> 32 & 0xffff;
    }
    __atomic_store_n(own + 1, kIsThere | E(before + part), __ATOMIC_RELEASE);
  } else {
    if (first_group != 0) {
      wait_for_word(words + 2 * first_group - 2);
      before = E(words[2 * first_group - 1]);
    }
    own[1] = u64(before + part);
    __atomic_store_n(own, 1ull, __ATOMIC_RELEASE);
  }
  return before;
}

// Groups of `len` elements that a task takes through each pass around a look-back. The second pass
// finds in the cache what the first pass has read.
constexpr u32 kMaxChunk = 32;
CINCH_CALL u32 chunk_groups(i64 group_len) {
  const i64 groups = i64(kMaxChunk) * kTile / (group_len < 1 ? 1 : group_len);
  return groups < 1 ? 1 : groups > kMaxChunk ? kMaxChunk : u32(groups);
}

// status[0]: flags; status[1]: 0, or 1 + the lowest message of a failed check.
CINCH_CALL void raise_flag(const KernelArgs* args, u32 flag) {
  __atomic_fetch_or(args->status, flag, __ATOMIC_RELAXED);
}
CINCH_CALL void report_failure(const KernelArgs* args, u32 message) {
  u32 known = __atomic_load_n(args->status + 1, __ATOMIC_RELAXED);
  while (known == 0 || known > message + 1) {
    if (__atomic_compare_exchange_n(args->status + 1, &known, message + 1, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      return;
    }
  }
}

// A task's own histogram. The task adds it to the buffer at its end. Tasks with few elements for
// many bins add to the buffer at once. Neighbouring lanes count in copies of their own: they often
// hit the same bin and would wait for each other. Counts are u32 and wrap.
template <u32 Bins>
struct Histogram {
  static constexpr u32 kCopies = Bins <= 2048 ? 4 : Bins <= 16384 ? 2 : 1;
  static constexpr u32 kOwnBins = Bins <= 65536 ? Bins : 1;
  u8* buffer;
  bool is_own;
  u32 own[kCopies][kOwnBins];

  CINCH_MEMBER void open(u8* counts, u64 elements) {
    buffer = counts;
    is_own = Bins <= 65536 && elements >= 2 * u64(Bins);
    if (!is_own) return;
    for (u32 c = 0; c < kCopies; ++c) {
      for (u32 i = 0; i < kOwnBins; ++i) own[c][i] = 0;
    }
  }
  CINCH_MEMBER void take(Lanes<u32> bin, Truth live) {
    const u32 bits = bits_of_truth(Truth(live & (bin < wide(Bins))));
    const auto bins = lane_array(bin);
    if (is_own && bits == (1u << W) - 1) {
#pragma unroll
      for (u32 i = 0; i < W; ++i) ++own[i % kCopies][bins.at[i]];
      return;
    }
#pragma clang loop unroll(disable)
    for (u32 rest = bits; rest != 0; rest &= rest - 1) {
      const u32 i = u32(__builtin_ctz(rest));
      if (is_own) {
        ++own[i % kCopies][bins.at[i]];
      } else {
        __atomic_fetch_add((u32*)buffer + bins.at[i], 1u, __ATOMIC_RELAXED);
      }
    }
  }
  CINCH_MEMBER void close() {
    if (!is_own) return;
    for (u32 i = 0; i < kOwnBins; ++i) {
      u32 count = 0;
      for (u32 c = 0; c < kCopies; ++c) count += own[c][i];
      if (count != 0) __atomic_fetch_add((u32*)buffer + i, count, __ATOMIC_RELAXED);
    }
  }
};

// Sums of integers in cells that tasks share. A run of numbers for one cell is added to it at once,
// so lanes are examined only if the next number belongs to another cell. Zeros are not added.
template <class U>
struct Cells {
  u8* buffer;
  i64 cell = 0;
  U sum = 0;

  template <class I, class V>
  CINCH_MEMBER void take(I index, V x, Truth live) {
    const V part = op_select(live, x, V(0));
    if (!any_lane(Truth(is_nonzero(part)))) return;
    const auto places = lane_array(index);
    const auto sums = lane_array(sum_lanes_so_far(part));
    U done = 0;
#pragma clang loop unroll(disable)
    for (u32 rest = bits_of_truth(op_ne(index, lanes_down<1>(index))); rest != 0;
         rest &= rest - 1) {
      const int i = __builtin_ctz(rest);
      add(i64(places.at[i]), U(U(sums.at[i]) - done));
      done = U(sums.at[i]);
    }
    add(i64(places.at[W - 1]), U(U(sums.at[W - 1]) - done));
  }
  CINCH_MEMBER void add(i64 place, U x) {
    if (place != cell) {
      close();
      cell = place;
    }
    sum += x;
  }
  CINCH_MEMBER void close() {
    if (sum != 0) __atomic_fetch_add((U*)buffer + cell, sum, __ATOMIC_RELAXED);
    sum = 0;
  }
};

// For images that count accesses. Counts bits, because tasks and rows may share a byte, so only the
// whole launch can be rounded to bytes.
CINCH_CALL u64 lane_bits(Truth live, u32 bits) {
  return u64(__builtin_popcount(bits_of_truth(live))) * bits;
}
CINCH_CALL void add_counted(const KernelArgs* args, u64 read, u64 written) {
  if (!args->counters) return;
  __atomic_fetch_add(args->counters, read, __ATOMIC_RELAXED);
  __atomic_fetch_add(args->counters + 1, written, __ATOMIC_RELAXED);
}

}  // namespace cinch
