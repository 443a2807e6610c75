// scan.h: running sums of integers, float-order scans, look-back over groups. Needs reduce.h.

namespace cinch {

// Sums of integers wrap.
template <class T>
CINCH_FN T wrapping_add(T a, T b) {
  return lang::add(a, b);
}

// The running sum over a row of the tile, in the order of elements, from `carry`, which becomes the
// sum at the row's end. Elements that are not live count as 0.
template <class T>
CINCH_FN void running_sum(const T (&x)[4], u32 live, bool exclusive, T& carry, T (&out)[4]) {
  T own[4];
  T sum = T(0);
  CINCH_EACH {
    const T before = sum;
    sum = wrapping_add(sum, c < live ? x[c] : T(0));
    own[c] = exclusive ? before : sum;
  }
  T upto = sum;
#pragma unroll 1
  for (u32 distance = 1; distance < 32u; distance *= 2) {
    const T other = __shfl_up_sync(kAllLanes, upto, distance);
    if (lane_index() >= distance) upto = wrapping_add(other, upto);
  }
  const T front = wrapping_add(carry, lang::sub(upto, sum));
  CINCH_EACH out[c] = wrapping_add(front, own[c]);
  carry = wrapping_add(carry, lane_get(upto, 31));
}

// The same for truth values: how many are true.
template <class T>
CINCH_FN void running_sum(const bool (&x)[4], u32 live, bool exclusive, T& carry, T (&out)[4]) {
  bool counts[4];
  CINCH_EACH counts[c] = c < live && x[c];
  if (!holds_in_row(counts)) {
    CINCH_EACH out[c] = carry;
    return;
  }
  const u32 lanes_before = (1u << lane_index()) - 1u;
  u32 before = 0, all = 0;
  CINCH_EACH {
    const u32 votes = __ballot_sync(kAllLanes, counts[c]);
    before += u32(__popc(votes & lanes_before));
    all += u32(__popc(votes));
  }
  T sum = wrapping_add(carry, T(before));
  CINCH_EACH {
    const T upto = wrapping_add(sum, counts[c] ? T(1) : T(0));
    out[c] = exclusive ? sum : upto;
    sum = upto;
  }
  carry = wrapping_add(carry, T(all));
}

// The float-order scan of up to 1024 items, in place: for d = 1, 2, 4 … 512, each item takes in the
// item d before it, all at once. Goes through chunks from high to low, so that a chunk reads items
// that are not changed yet.
template <u32 Warps, class Item, class Load, class Store, class Join>
CINCH_FN void scan_tile(Team<Warps> team, u32 len, Item empty, Load load, Store store, Join join) {
  constexpr u32 kThreads = Team<Warps>::kThreads;
  team.sync();
  for (u32 distance = 1; distance < kTileElems && distance < len; distance *= 2) {
    for (u32 chunk = (kTileElems + kThreads - 1) / kThreads; chunk-- > 0u;) {
      const u32 at = chunk * kThreads + team.rank;
      const bool takes = at >= distance && at < len;
      Item joined = empty;
      if (takes) joined = join(load(at - distance), load(at));
      team.sync();
      if (takes) store(at, joined);
      team.sync();
    }
  }
}

// Spans of 2^20 partials in a row. Fewer than 2^32 elements make no more.
constexpr u32 kMaxSpans = 4;

// Item `last` of the float-order scan of the span ends.
template <class Item, class Join>
CINCH_FN Item scanned_span(const Item (&ends)[kMaxSpans], u32 last, Join join) {
  Item x[kMaxSpans];
#pragma unroll
  for (u32 i = 0; i < kMaxSpans; ++i) x[i] = ends[i];
#pragma unroll
  for (u32 distance = 1; distance < kMaxSpans; distance *= 2) {
#pragma unroll
    for (u32 i = kMaxSpans; i-- > distance;) x[i] = join(x[i - distance], x[i]);
  }
  Item result = x[0];
#pragma unroll
  for (u32 i = 1; i < kMaxSpans; ++i) {
    if (i == last) result = x[i];
  }
  return result;
}

// Replaces a row of `len` stored partials by its inclusive float-order scan: tiles of 1024, and
// tile ends by the same rule, which join on the left. Takes 1024 tiles (a span) at a time. `ends`
// is shared memory for 1024 items. The whole block calls it.
template <u32 Warps, class Item, class Load, class Store, class Join>
CINCH_FN void scan_stored_row(Team<Warps> team, u64 len, Item* ends, Item empty, Load load,
                              Store store, Join join) {
  const auto load_end = [&](u32 i) { return ends[i]; };
  const auto store_end = [&](u32 i, Item x) { ends[i] = x; };
  constexpr u64 kSpan = u64(kTileElems) * kTileElems;
  Item span_ends[kMaxSpans];
#pragma unroll
  for (u32 i = 0; i < kMaxSpans; ++i) span_ends[i] = empty;
  Item before = empty;  // the scanned end of the tile before the span
  u32 span = 0;
  for (u64 begin = 0; begin < len; begin += kSpan, ++span) {
    const u64 rest = len - begin;
    const u32 num_tiles = u32(((rest < kSpan ? rest : kSpan) + kTileElems - 1) / kTileElems);
    for (u32 tile = 0; tile < num_tiles; ++tile) {
      const u64 first = begin + u64(tile) * kTileElems;
      const u32 tile_len = u32(len - first < kTileElems ? len - first : kTileElems);
      scan_tile(
          team, tile_len, empty, [&](u32 i) { return load(first + i); },
          [&](u32 i, Item x) { store(first + i, x); }, join);
      if (team.rank == 0u) ends[tile] = load(first + tile_len - 1);
    }
    scan_tile(team, num_tiles, empty, load_end, store_end, join);
    Item front = empty;
    if (span > 0u) front = scanned_span(span_ends, span - 1u, join);
    for (u32 tile = 0; tile < num_tiles; ++tile) {
      const u64 first = begin + u64(tile) * kTileElems;
      const u32 tile_len = u32(len - first < kTileElems ? len - first : kTileElems);
      Item left = before;
      if (tile > 0u) left = span > 0u ? join(front, ends[tile - 1]) : ends[tile - 1];
      for (u32 i = team.rank; i < tile_len && (span > 0u || tile > 0u);
           i += Team<Warps>::kThreads) {
        store(first + i, join(left, load(first + i)));
      }
    }
    const Item span_end = ends[num_tiles - 1];
#pragma unroll
    for (u32 i = 0; i < kMaxSpans; ++i) {
      if (i == span) span_ends[i] = span_end;
    }
    before = span > 0u ? join(front, span_end) : span_end;
    team.sync();
  }
}

// ---- look-back (Merrill and Garland, 2016) ----
// The state of ticket t is two words. Each holds a status in its upper half and half of a 64-bit
// sum in its lower half, so a reader sees whether both belong together. The sum travels with the
// status, and nothing else of the writer is read, so the accesses need no order. Status 1: the
// ticket's own total. Status 2: the sum up to its end. The ticket counter is behind the last
// group's pair. All words are zero before the launch.
constexpr u32 kOwnTotal = 1, kSumUpToEnd = 2;

CINCH_FN void put_state(u64* to, u64 word) {
  __nv_atomic_store_n(to, word, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}
CINCH_FN u64 get_state(u64* from) {
  return __nv_atomic_load_n(from, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

CINCH_FN void publish(u64* state, u64 ticket, u32 status, u64 sum) {
  put_state(state + 2 * ticket, (u64(status) << 32) | (sum & 0xffffffffull));
  put_state(state + 2 * ticket + 1, (u64(status) << 32) | (sum >> 32));
}

CINCH_FN u32 wait_for(u64* state, u64 ticket, u64& sum) {
  u64 low, high;
  do {
    low = get_state(state + 2 * ticket);
    high = get_state(state + 2 * ticket + 1);
  } while ((low >> 32) == 0u || (low >> 32) != (high >> 32));
  sum = (low & 0xffffffffull) | (high << 32);
  return u32(low >> 32);
}

// The sum of all tickets before this one. A warp looks at 32 of them at a time. Running blocks take
// tickets in order, so every ticket that it waits for will be published.
CINCH_FN u64 sum_before(u64* state, u64 ticket, u64 total) {
  const u32 lane = lane_index();
  if (lane == 0u) publish(state, ticket, ticket == 0u ? kSumUpToEnd : kOwnTotal, total);
  __syncwarp();
  u64 before = 0;
  bool is_done = ticket == 0u;
  for (u64 end = ticket; !is_done; end = end < 32u ? 0u : end - 32u) {
    u64 sum = 0;
    u32 status = kSumUpToEnd;  // before the first ticket: an empty sum
    if (lane < end) status = wait_for(state, end - 1u - lane, sum);
    __syncwarp();
    const u32 complete = __ballot_sync(kAllLanes, status == kSumUpToEnd);
    const u32 last = complete ? u32(__ffs(int(complete))) - 1u : 31u;
    u64 part = lane <= last ? sum : 0u;
#pragma unroll 1
    for (u32 distance = 16; distance >= 1u; distance /= 2) {
      part += __shfl_xor_sync(kAllLanes, part, int(distance));
    }
    before += part;
    is_done = complete != 0u;
  }
  if (lane == 0u && ticket != 0u) publish(state, ticket, kSumUpToEnd, before + total);
  return before;
}

// The sum of the totals of all groups before this warp's group (PerWarp: one group per warp, in
// order) or before this block's. `slots` is shared memory of Warps + 1 words. All threads of the
// block must call it. A function of its own, one for all kernels, because it is called once for
// many elements.
template <u32 Warps, bool PerWarp>
static __device__ __noinline__ u64 look_back(u64* state, u64 ticket, u64 total, u64* slots) {
  const u32 warp = warp_index();
  if (lane_index() == 0u) slots[warp] = PerWarp || warp == 0u ? total : 0u;
  __syncthreads();
  if (warp == 0u) {
    u64 sum = 0;
#pragma unroll 1
    for (u32 i = 0; i < Warps; ++i) sum += slots[i];
    const u64 before = sum_before(state, ticket, sum);
    if (lane_index() == 0u) slots[Warps] = before;
  }
  __syncthreads();
  u64 result = slots[Warps];
#pragma unroll 1
  for (u32 i = 0; PerWarp && i < warp; ++i) result += slots[i];
  __syncthreads();
  return result;
}

// The next ticket. All threads of the block get the same.
CINCH_FN u64 take_ticket(u64* counter, u64* slot) {
  if (threadIdx.x == 0u) *slot = atomicAdd(counter, 1ull);
  __syncthreads();
  const u64 ticket = *slot;
  __syncthreads();
  return ticket;
}

}  // namespace cinch
