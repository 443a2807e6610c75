// services.h: what a call does beside its program's own kernels: moves, conversions, the commit of
// states. Needs launch.h and storage.h. Every function is called by all threads of the tensor's
// blocks.

namespace cinch {

// Bytes from any address to any other, 16 at a time where both allow it; they do not overlap.
CINCH_FN void move_bytes(Threads threads, u8* to, const u8* from, u64 num_bytes) {
  using Span = Pack<u32, 4>;
  u64 moved = 0;
  if (((reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from)) & 15u) == 0) {
    const u64 num_spans = num_bytes / 16u;
#pragma unroll 1
    for (u64 i = threads.rank; i < num_spans; i += threads.count) {
      reinterpret_cast<Span*>(to)[i] = reinterpret_cast<const Span*>(from)[i];
    }
    moved = num_spans * 16u;
  }
#pragma unroll 1
  for (u64 i = moved + threads.rank; i < num_bytes; i += threads.count) to[i] = from[i];
}

CINCH_FN void zero_bytes(Threads threads, u8* to, u64 num_bytes) {
  using Span = Pack<u32, 4>;
  u64 done = 0;
  if ((reinterpret_cast<u64>(to) & 15u) == 0) {
    const u64 num_spans = num_bytes / 16u;
#pragma unroll 1
    for (u64 i = threads.rank; i < num_spans; i += threads.count) {
      reinterpret_cast<Span*>(to)[i] = Span{{0u, 0u, 0u, 0u}};
    }
    done = num_spans * 16u;
  }
#pragma unroll 1
  for (u64 i = done + threads.rank; i < num_bytes; i += threads.count) to[i] = 0u;
}

// `to` holds elements of S; f(i) gives element i.
template <class S, class F>
CINCH_FN void store_each(Threads threads, u8* to, u64 count, F f) {
#pragma unroll 1
  for (u64 first = 4u * threads.rank; first < count; first += 4u * threads.count) {
    const u32 live = u32(count - first < 4u ? count - first : 4u);
    typename S::Compute values[4];
    CINCH_EACH values[c] = c < live ? f(first + c) : typename S::Compute(0);
    store_four<S>(to, i64(first), live, values);
  }
}

template <class To, class From>
CINCH_FN void convert_elems(Threads threads, u8* to, const u8* from, u64 count) {
#pragma unroll 1
  for (u64 first = 4u * threads.rank; first < count; first += 4u * threads.count) {
    const u32 live = u32(count - first < 4u ? count - first : 4u);
    f32 values[4];
    load_four<From>(from, i64(first), live, values);
    store_four<To>(to, i64(first), live, values);
  }
}

using StoredF32 = Stored<Kind::F32, 32, 32>;
using StoredF16 = Stored<Kind::F16, 16, 16>;
using StoredBF16 = Stored<Kind::BF16, 16, 16>;

// Type 1 is f16, 2 bf16.
CINCH_FN void widen(Threads threads, u8* to, const u8* from, u64 count, u32 type) {
  if (type == 1u) {
    convert_elems<StoredF32, StoredF16>(threads, to, from, count);
  } else {
    convert_elems<StoredF32, StoredBF16>(threads, to, from, count);
  }
}
CINCH_FN void narrow(Threads threads, u8* to, const u8* from, u64 count, u32 type) {
  if (type == 1u) {
    convert_elems<StoredF16, StoredF32>(threads, to, from, count);
  } else {
    convert_elems<StoredBF16, StoredF32>(threads, to, from, count);
  }
}

CINCH_FN f32 quiet_nan() {
  return f32_bits(0x7fc00000u);
}

// Is any of the values infinite or NaN?
CINCH_FN bool holds_nonfinite(Threads threads, const u8* values, u64 count) {
  bool found = false;
#pragma unroll 1
  for (u64 i = threads.rank; i < count; i += threads.count) {
    const u32 bits = reinterpret_cast<const u32*>(values)[i];
    found = found || (bits & 0x7f800000u) == 0x7f800000u;
  }
  return found;
}

// The end of a call, by one thread: what the host will read.
CINCH_FN void note_outcome(CinchOutcome& outcome, const u32* status) {
  outcome.flags = status[0];
  if (outcome.failed == 0u) outcome.failed = status[1];
}

// to[i] += addends[i], as f32.
CINCH_FN void add_to(Threads threads, u8* to, const u8* addends, u64 count) {
  store_each<StoredF32>(threads, to, count, [&](u64 i) {
    return lang::add(load_one<StoredF32>(to, i64(i)), load_one<StoredF32>(addends, i64(i)));
  });
}
CINCH_FN void divide(Threads threads, u8* to, const u8* from, u64 count, f32 divisor) {
  store_each<StoredF32>(threads, to, count, [&](u64 i) {
    return lang::div(load_one<StoredF32>(from, i64(i)), divisor);
  });
}

}  // namespace cinch
