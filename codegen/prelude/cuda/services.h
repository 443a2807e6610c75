// services.h: what a call does besides its program's own kernels: moves, conversions, and the
// commit of states. Needs launch.h and storage.h. All threads of the tensor's blocks must call
// every function.

namespace cinch {

// Moves bytes between any addresses that do not overlap, 16 at a time if both addresses allow it.
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

using StoredF32 = Stored<Kind::F32, 32, 32>;
using StoredHalf = Stored<Kind::UInt, 16, 16>;  // bits of f16 or bf16

// Type 1 is f16, 2 bf16.
CINCH_FN void widen(Threads threads, u8* to, const u8* from, u64 count, u32 type) {
#pragma unroll 1
  for (u64 first = 4u * threads.rank; first < count; first += 4u * threads.count) {
    const u32 live = u32(count - first < 4u ? count - first : 4u);
    i32 halves[4];
    f32 values[4];
    load_four<StoredHalf, Access::Any>(from, i64(first), 0u, live, halves);
    CINCH_EACH {
      const u16 bits = u16(halves[c]);
      values[c] = type == 1u ? lang::from_f16(bits) : lang::from_bf16(bits);
    }
    store_four<StoredF32, Access::Any>(to, i64(first), 0u, live, values);
  }
}
CINCH_FN void narrow(Threads threads, u8* to, const u8* from, u64 count, u32 type) {
#pragma unroll 1
  for (u64 first = 4u * threads.rank; first < count; first += 4u * threads.count) {
    const u32 live = u32(count - first < 4u ? count - first : 4u);
    i32 halves[4];
    f32 values[4];
    load_four<StoredF32, Access::Any>(from, i64(first), 0u, live, values);
    CINCH_EACH halves[c] = i32(type == 1u ? lang::to_f16(values[c]) : lang::to_bf16(values[c]));
    store_four<StoredHalf, Access::Any>(to, i64(first), 0u, live, halves);
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

// Notes what the host reads at the end of a call. One thread calls it.
CINCH_FN void note_outcome(GpuOutcome& outcome, u32 flags, u32 failed) {
  outcome.flags = flags;
  if (outcome.failed == 0u) outcome.failed = failed;
}

// to[i] += addends[i], as f32.
CINCH_FN void add_to(Threads threads, u8* to, const u8* addends, u64 count) {
#pragma unroll 1
  for (u64 i = threads.rank; i < count; i += threads.count) {
    const f32 sum =
        lang::add(load_one<StoredF32>(to, i64(i)), load_one<StoredF32>(addends, i64(i)));
    store_one<StoredF32>(to, i64(i), sum);
  }
}
CINCH_FN void divide(Threads threads, u8* to, const u8* from, u64 count, f32 divisor) {
#pragma unroll 1
  for (u64 i = threads.rank; i < count; i += threads.count) {
    store_one<StoredF32>(to, i64(i), lang::div(load_one<StoredF32>(from, i64(i)), divisor));
  }
}

CINCH_FN void multiply(Threads threads, u8* to, const u8* from, u64 count, f32 factor) {
#pragma unroll 1
  for (u64 i = threads.rank; i < count; i += threads.count) {
    store_one<StoredF32>(to, i64(i), lang::mul(load_one<StoredF32>(from, i64(i)), factor));
  }
}

// Stores NaN in every element.
CINCH_FN void fill_nan(Threads threads, u8* to, u64 count) {
#pragma unroll 1
  for (u64 i = threads.rank; i < count; i += threads.count) {
    store_one<StoredF32>(to, i64(i), quiet_nan());
  }
}

// The services that do not depend on the wire (GpuService of runtime/image/kernel_abi.h). `to` and
// `from` are the buffers that arg0 and arg1 name, or null.
CINCH_FN void serve(const GpuLaunch& launch, const GpuStep& step, const GpuTensor& args,
                    u32* status, Place place, u8* to, const u8* from) {
  const Threads threads = threads_of(place);
  const u64 count = num_elems(args);
  const bool is_first = threads.rank == 0u;
  u8* const outside = static_cast<u8*>(args.tensor);
  switch (step.kernel) {
    case u32(GpuService::Zero):
      return zero_bytes(threads, to, args.bytes[step.arg0]);
    case u32(GpuService::Copy):
      return move_bytes(threads, to, from, args.bytes[step.arg0]);
    case u32(GpuService::SetRound):
      if (is_first && count != 0u) {
        *reinterpret_cast<i64*>(to) = step.value + i64(args.sizes[step.arg1]);
      }
      return;
    case u32(GpuService::Check):
      if (is_first && args.sizes[step.arg0] == 0u) {
        fail_call(status, step.arg1 | kConditionBit);
      }
      return;
    case u32(GpuService::Widen):
      return widen(threads, to, outside, count, step.arg1);
    case u32(GpuService::Narrow):
      // A marked payload may be rejected, and decode then leaves the output. A marked finish stores
      // NaN.
      if (status[1] == 0u || (step.value != 0 && (status[0] & 1u) != 0u)) {
        narrow(threads, outside, to, count, step.arg1);
      }
      return;
    case u32(GpuService::FindNonFinite):
      if (status[1] != 0u && holds_nonfinite(threads, to, count)) flag_nonfinite(status);
      return;
    case u32(GpuService::Fill):
      // A marked payload may be rejected because of its padding.
      if ((status[0] & 1u) != 0u && status[1] == 0u) fill_nan(threads, to, count);
      if (is_first) note_outcome(launch.outcomes[place.tensor], status[0], status[1]);
      return;
    case u32(GpuService::AddTo):
      if (status[1] == 0u) add_to(threads, outside, to, count);
      return;
    case u32(GpuService::Divide):
      return divide(threads, to, from, count, f32_bits(u32(step.value)));
    case u32(GpuService::Multiply):
      return multiply(threads, to, from, count, f32_bits(u32(step.value)));
  }
}

}  // namespace cinch
