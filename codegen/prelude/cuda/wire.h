// wire.h: writes and checks payloads (docs/payload.md) in place. Needs services.h and hash.h. The
// emitter knows the fields: it prints `seal` and `open` as calls of these functions.

namespace cinch {

constexpr u32 kMarked = kPayloadNonFinite;  // in status[0]: kFlagNonFinite
constexpr u32 kHeaderBytes = 64u;

// Formulas of sizes, as the host computes them. Formulas of a count cannot overflow 64 bits,
// because they do not overflow at the count's bound.
CINCH_FN i64 host_div(i64 a, i64 b) {
  return b == 0 ? 0 : a / b;
}
CINCH_FN i64 host_mod(i64 a, i64 b) {
  return b == 0 ? 0 : a % b;
}
CINCH_FN i64 host_ceil_div(i64 a, i64 b) {
  return b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
}
CINCH_FN i64 host_align_up(i64 a, i64 b) {
  return b <= 0 ? a : host_ceil_div(a, b) * b;
}
CINCH_FN i64 host_min(i64 a, i64 b) {
  return b < a ? b : a;
}
CINCH_FN i64 host_max(i64 a, i64 b) {
  return a < b ? b : a;
}

CINCH_FN u64 align_field(u64 offset) {
  return (offset + 15u) & ~u64(15);
}
CINCH_FN u64 packed_bytes(i64 num_elems, u32 bits) {
  return (u64(num_elems) * bits + 7u) / 8u;
}

// ---- writing ----

// Writes one field at its place in the payload, and the zero bytes in front of it. `staged` holds
// its elements if they are not there already. These are functions of their own, because they are
// called for each field, and compile time grows with code.
static __device__ __noinline__ void close_field(Threads threads, u8* payload, u64 gap, u64 offset,
                                                u64 num_bytes, const u8* staged, bool is_marked) {
  zero_bytes(threads, payload + gap, offset - gap);
  if (is_marked) {
    zero_bytes(threads, payload + offset, num_bytes);
  } else if (staged != nullptr) {
    move_bytes(threads, payload + offset, staged, num_bytes);
  }
}

// Payloads are at multiples of 16 bytes.
CINCH_FN void put_word(u8* payload, u32 index, u32 word) {
  reinterpret_cast<u32*>(payload)[index] = word;
}
CINCH_FN u32 get_word(const u8* payload, u32 index) {
  return reinterpret_cast<const u32*>(payload)[index];
}

// Writes header and counts. One thread calls it.
template <u32 Counts>
CINCH_FN void write_frame(const GpuTensor& args, u32 flags, u64 payload_bytes, u32 num_counts,
                          const u32 (&counts)[Counts + 1u]) {
  u8* const payload = static_cast<u8*>(args.payload);
  put_word(payload, 0, kPayloadMagicWord);
  put_word(payload, 1, kPayloadFormatVersion);
  put_word(payload, 2, flags);
#pragma unroll 1
  for (u32 i = 0; i < 5u; ++i) {
    put_word(payload, 4u + 2u * i, u32(args.header[i]));
    put_word(payload, 5u + 2u * i, u32(args.header[i] >> 32));
  }
  put_word(payload, 14, u32(payload_bytes));
  put_word(payload, 15, u32(payload_bytes >> 32));
#pragma unroll
  for (u32 i = 0; i < Counts; ++i) {
    if (i < num_counts) put_word(payload, 16u + i, counts[i]);
  }
  put_word(payload, 3, check_word(payload, 15u + num_counts));
}

// ---- reading ----

CINCH_FN void fail_payload(u32* status, u32 fault, u32 part) {
  fail_call(status, (kPayloadFaultBit | part << 8 | fault) - 1u);
}

// The counts and flags of a payload with a valid header, or its fault. Every thread gets the same.
template <u32 Counts>
struct Opened {
  u32 fault = 0, part = 0;
  u32 flags = 0;
  u64 payload_bytes = 0;
  u32 counts[Counts + 1u];
};

template <u32 Counts>
CINCH_FN void refuse(Opened<Counts>& opened, bool is_bad, u32 fault, u32 part = 0) {
  if (is_bad && opened.fault == 0u) {
    opened.fault = fault;
    opened.part = part;
  }
}

// `bounds`: the largest value of each count. The payload of no elements is a header alone.
template <u32 Counts>
CINCH_FN Opened<Counts> open_frame(const GpuTensor& args, const i64 (&bounds)[Counts + 1u]) {
  Opened<Counts> opened;
  const u8* const payload = static_cast<const u8*>(args.payload);
  const u32 num_counts = num_elems(args) == 0u ? 0u : Counts;
  refuse(opened, args.payload_bytes < kHeaderBytes, kFaultLength);
  if (opened.fault != 0u) return opened;
  opened.flags = get_word(payload, 2);
  opened.payload_bytes = u64(get_word(payload, 14)) | u64(get_word(payload, 15)) << 32;
  refuse(opened, get_word(payload, 0) != kPayloadMagicWord, kFaultMagic);
  refuse(opened, get_word(payload, 1) != kPayloadFormatVersion, kFaultVersion);
  refuse(opened, (opened.flags & ~kMarked) != 0u, kFaultFlags);
  refuse(opened, opened.payload_bytes > args.payload_bytes, kFaultLength);
  u32 same = 0;
#pragma unroll 1
  for (u32 i = 0; i < 5u; ++i) {
    const u64 found = u64(get_word(payload, 4u + 2u * i)) | u64(get_word(payload, 5u + 2u * i))
                                                                << 32;
    same |= u32(found == args.header[i]) << i;
  }
  refuse(opened, (same & 3u) != 3u, kFaultFingerprint);
  refuse(opened, (same & 24u) != 24u, kFaultShape);
  refuse(opened, (same & 4u) == 0u, kFaultDecodeHash);
  refuse(opened, args.payload_bytes < kHeaderBytes + 4u * num_counts, kFaultLength);
  if (opened.fault != 0u) return opened;
#pragma unroll
  for (u32 i = 0; i < Counts; ++i) {
    opened.counts[i] = i < num_counts ? get_word(payload, 16u + i) : 0u;
    const i64 bound = (opened.flags & kMarked) != 0u ? 0 : bounds[i];
    refuse(opened, i < num_counts && i64(opened.counts[i]) > bound, kFaultCount, i);
  }
  refuse(opened, get_word(payload, 3) != check_word(payload, 15u + num_counts), kFaultCheckWord);
  return opened;
}

// Checks the zero bytes in front of a field.
static __device__ __noinline__ void check_padding(Threads threads, const u8* payload, u64 begin,
                                                  u64 end, u32 field, u32* status) {
#pragma unroll 1
  for (u64 i = begin + threads.rank; i < end; i += threads.count) {
    if (payload[i] != 0u) fail_payload(status, kFaultPadding, field);
  }
}

// Checks the bits behind a packed field's last element.
static __device__ __noinline__ void check_last_bits(Threads threads, const u8* field_begin,
                                                    i64 num_elems, u32 bits, u32 field,
                                                    u32* status) {
  const u64 used = u64(num_elems) * bits;
  if (threads.rank != 0u || used % 8u == 0u) return;
  if (field_begin[used / 8u] >> (used % 8u) != 0u) fail_payload(status, kFaultLastBits, field);
}

// An element as an index. A negative one becomes so large that it is above every limit.
template <class T>
CINCH_FN u64 as_index(T x) {
  return u64(i64(x));
}
CINCH_FN u64 as_index(u32 x) {
  return u64(x);
}
CINCH_FN u64 as_index(u64 x) {
  return x;
}

template <class S>
static __device__ __noinline__ void check_indices(Threads threads, const u8* elems, i64 num_elems,
                                                  i64 row_elems, u64 limit, bool ascends, u32 field,
                                                  u32* status) {
#pragma unroll 1
  for (u64 i = threads.rank; i < u64(num_elems); i += threads.count) {
    const u64 index = as_index(load_one<S>(elems, i64(i)));
    if (index >= limit) fail_payload(status, kFaultIndexLimit, field);
    if (ascends && i % u64(row_elems) != 0u && index <= as_index(load_one<S>(elems, i64(i) - 1))) {
      fail_payload(status, kFaultIndexOrder, field);
    }
  }
}

}  // namespace cinch
