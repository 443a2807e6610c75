// wire.h: payloads (docs/payload.md) written and checked where they lie. Needs services.h, hash.h.
// Which fields there are is the emitter's to say: it writes `seal` and `open` as one call after
// another of what is here.

namespace cinch {

constexpr u32 kMarked = 1u;  // of a payload's flags, and of status[0]
constexpr u32 kHeaderBytes = 64u;

// Formulas of sizes, as the host computes them; those that hold a count cannot leave 64 bits, since
// they do not at the count's bound.
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

// One field at the place where the payload has it, and the zero bytes in front of it. `staged`:
// where its elements are if not there already.
CINCH_FN void close_field(Threads threads, u8* payload, u64 gap, u64 offset, u64 num_bytes,
                          const u8* staged, bool is_marked) {
  zero_bytes(threads, payload + gap, offset - gap);
  if (is_marked) {
    zero_bytes(threads, payload + offset, num_bytes);
  } else if (staged != nullptr) {
    move_bytes(threads, payload + offset, staged, num_bytes);
  }
}

// The header without its check word, then the counts: what the check word is of.
template <u32 Counts>
struct Frame {
  static constexpr u32 kWords = 15u + Counts;
  u32 words[kWords];
};

template <u32 Counts>
CINCH_FN u32 check_word(const Frame<Counts>& frame) {
  return u32(xxh3_low<4u * Frame<Counts>::kWords>(frame.words));
}

// Payloads lie at multiples of 16 bytes.
CINCH_FN void put_word(u8* to, u32 word) {
  *reinterpret_cast<u32*>(to) = word;
}
CINCH_FN u32 get_word(const u8* from) {
  return *reinterpret_cast<const u32*>(from);
}

// Header and counts, by one thread.
template <u32 Counts>
CINCH_FN void write_frame(const CinchTensor& args, u32 flags, u64 payload_bytes,
                          const u32 (&counts)[Counts + 1u]) {
  Frame<Counts> frame;
  frame.words[0] = 0x48434e43u;  // "CNCH"
  frame.words[1] = kPayloadVersion;
  frame.words[2] = flags;
#pragma unroll
  for (u32 i = 0; i < 5u; ++i) {
    frame.words[3u + 2u * i] = u32(args.header[i]);
    frame.words[4u + 2u * i] = u32(args.header[i] >> 32);
  }
  frame.words[13] = u32(payload_bytes);
  frame.words[14] = u32(payload_bytes >> 32);
#pragma unroll
  for (u32 i = 0; i < Counts; ++i) frame.words[15u + i] = counts[i];
  u8* const payload = static_cast<u8*>(args.payload);
#pragma unroll
  for (u32 i = 0; i < Frame<Counts>::kWords; ++i) {
    put_word(payload + 4u * (i < 3u ? i : i + 1u), frame.words[i]);
  }
  put_word(payload + 12u, check_word(frame));
}

// ---- reading ----

CINCH_FN void fail_payload(u32* status, u32 fault, u32 part) {
  fail_call(status, (kPayloadFaultBit | part << 8 | fault) - 1u);
}

// The counts and flags of a payload whose header is in order, or what is wrong with it: every
// thread finds the same.
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

// `bounds`: the most that each count can be.
template <u32 Counts>
CINCH_FN Opened<Counts> open_frame(const CinchTensor& args, const i64 (&bounds)[Counts + 1u]) {
  Opened<Counts> opened;
  const u8* const payload = static_cast<const u8*>(args.payload);
  refuse(opened, args.payload_bytes < kHeaderBytes, kFaultLength);
  if (opened.fault != 0u) return opened;
  Frame<Counts> frame;
#pragma unroll
  for (u32 i = 0; i < 15u; ++i) frame.words[i] = get_word(payload + 4u * (i < 3u ? i : i + 1u));
  opened.flags = frame.words[2];
  opened.payload_bytes = u64(frame.words[13]) | u64(frame.words[14]) << 32;
  refuse(opened, frame.words[0] != 0x48434e43u, kFaultMagic);
  refuse(opened, frame.words[1] != kPayloadVersion, kFaultVersion);
  refuse(opened, (opened.flags & ~kMarked) != 0u, kFaultFlags);
  refuse(opened, opened.payload_bytes > args.payload_bytes, kFaultLength);
  bool is_same[5];
#pragma unroll
  for (u32 i = 0; i < 5u; ++i) {
    const u64 found = u64(frame.words[3u + 2u * i]) | u64(frame.words[4u + 2u * i]) << 32;
    is_same[i] = found == args.header[i];
  }
  refuse(opened, !is_same[0] || !is_same[1], kFaultFingerprint);
  refuse(opened, !is_same[3] || !is_same[4], kFaultShape);
  refuse(opened, !is_same[2], kFaultDecodeHash);
  refuse(opened, args.payload_bytes < kHeaderBytes + 4u * Counts, kFaultLength);
  if (opened.fault != 0u) return opened;
#pragma unroll
  for (u32 i = 0; i < Counts; ++i) {
    opened.counts[i] = frame.words[15u + i] = get_word(payload + kHeaderBytes + 4u * i);
    const i64 bound = (opened.flags & kMarked) != 0u ? 0 : bounds[i];
    refuse(opened, i64(opened.counts[i]) > bound, kFaultCount, i);
  }
  refuse(opened, get_word(payload + 12u) != check_word(frame), kFaultCheckWord);
  return opened;
}

// The payload of no elements: a header alone.
template <u32 Counts>
CINCH_FN Opened<Counts> open_empty(const CinchTensor& args) {
  const i64 no_bounds[1] = {0};
  const Opened<0> header = open_frame<0>(args, no_bounds);
  Opened<Counts> opened;
  opened.fault = header.fault;
  opened.part = header.part;
  opened.flags = header.flags;
  opened.payload_bytes = header.payload_bytes;
#pragma unroll
  for (u32 i = 0; i < Counts; ++i) opened.counts[i] = 0u;
  return opened;
}

// Zero bytes in front of a field.
CINCH_FN void check_padding(Threads threads, const u8* payload, u64 begin, u64 end, u32 field,
                            u32* status) {
#pragma unroll 1
  for (u64 i = begin + threads.rank; i < end; i += threads.count) {
    if (payload[i] != 0u) fail_payload(status, kFaultPadding, field);
  }
}

// The bits behind a packed field's last element.
CINCH_FN void check_last_bits(Threads threads, const u8* field_begin, i64 num_elems, u32 bits,
                              u32 field, u32* status) {
  const u64 used = u64(num_elems) * bits;
  if (threads.rank != 0u || used % 8u == 0u) return;
  if (field_begin[used / 8u] >> (used % 8u) != 0u) fail_payload(status, kFaultLastBits, field);
}

// An element as an index: a negative one becomes a huge one, and no limit lets it pass.
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
CINCH_FN void check_indices(Threads threads, const u8* elems, i64 num_elems, i64 row_elems,
                            u64 limit, bool ascends, u32 field, u32* status) {
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
