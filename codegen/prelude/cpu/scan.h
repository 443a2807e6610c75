// scan.h: scans of floats along a group, in the language's order. In a tile of 1024, for d = 1, 2,
// 4 … 512, each element takes in the element d before it. The tile ends are scanned by the same
// rule and join on the left. Needs tuples.h.

namespace cinch {

// An array that scans work on. The vector in front is read as the elements before the first.
template <class E>
struct LocalArray {
  Held<E> front[W];
  Held<E> at[kTile];

  CINCH_MEMBER Lanes<E> lanes(u32 place) const { return local_lanes(at + place); }
  CINCH_MEMBER void set(u32 place, Lanes<E> x) { set_local_lanes(at + place, x); }
  // Lane l is element place + l - distance, with any value before the first element. distance is
  // below W or a multiple of it.
  CINCH_MEMBER Lanes<E> lanes_before(u32 place, u32 distance) const {
    Lanes<E> x;
    __builtin_memcpy(&x, (const u8*)(at) + (i64(place) - i64(distance)) * i64(sizeof(Held<E>)),
                     sizeof x);
    return x;
  }
  CINCH_MEMBER Lanes<E> previous(u32 place, Lanes<E> first) {
    if (place == 0) front[W - 1] = first[0];
    return lanes_before(place, 1);
  }
  CINCH_MEMBER E last(u32 count) const { return release<E>(at[count - 1]); }
};

// Truth values that are only stored and loaded by vectors, a word for each vector.
struct LocalBits {
  LaneWord words[kTile / W];

  CINCH_MEMBER Truth lanes(u32 place) const { return truth_of_bits(words[place / W]); }
  CINCH_MEMBER void set(u32 place, Truth x) { words[place / W] = LaneWord(bits_of_truth(x)); }
};

// References to arrays that are scanned together.
template <class... E>
struct LocalArrays;
template <>
struct LocalArrays<> {
  CINCH_MEMBER Tuple<> lanes(u32) const { return {}; }
  CINCH_MEMBER Tuple<> lanes_before(u32, u32) const { return {}; }
  CINCH_MEMBER void set(u32, Tuple<>) const {}
};
template <class E, class... R>
struct LocalArrays<E, R...> {
  LocalArray<E>& head;
  LocalArrays<R...> tail;
  CINCH_MEMBER Tuple<E, R...> lanes(u32 place) const {
    return {head.lanes(place), tail.lanes(place)};
  }
  CINCH_MEMBER Tuple<E, R...> lanes_before(u32 place, u32 distance) const {
    return {head.lanes_before(place, distance), tail.lanes_before(place, distance)};
  }
  CINCH_MEMBER void set(u32 place, Tuple<E, R...> x) const {
    head.set(place, x.head);
    tail.set(place, x.tail);
  }
};

// Scans the first `count` elements in place by `join(a, b, lanes that count)`. Goes from the end
// down, so that elements are read before this distance changes them.
template <class Join, class... E>
CINCH_CALL void scan_local(const Join& join, LocalArrays<E...> x, u32 count) {
#pragma clang loop unroll(disable)
  for (u32 d = 1; d < kTile && d < count; d *= 2) {
    const u32 first = d < W ? 0 : d;
#pragma clang loop unroll(disable)
    for (u32 i = (count - 1) / W * W;; i -= W) {
      const Truth part = (lane_numbers() + wide(i)) >= wide(d);
      const Tuple<E...> b = x.lanes(i);
      x.set(i, choose(part, join(x.lanes_before(i, d), b, part), b));
      if (i == first) break;
    }
  }
}

// The same for an operation of reduce.h and for a program's own combiner, both as join(a, b, part).
template <class Op>
struct OperationJoin {
  using E = typename Op::Element;
  CINCH_MEMBER Tuple<E> operator()(Tuple<E> a, Tuple<E> b, Truth) const {
    return {Op::join(a.head, b.head), {}};
  }
};

// ---- finish_scan ----

// Local arrays, one for each member.
template <class... E>
struct OwnedLocals;
template <>
struct OwnedLocals<> {
  CINCH_MEMBER LocalArrays<> refs() { return {}; }
};
template <class E, class... R>
struct OwnedLocals<E, R...> {
  LocalArray<E> head;
  OwnedLocals<R...> tail;
  CINCH_MEMBER LocalArrays<E, R...> refs() { return {head, tail.refs()}; }
};

// The tile ends of the level above: at most N tuples.
template <u32 N, class... E>
struct Ends;
template <u32 N>
struct Ends<N> {
  CINCH_MEMBER Tuple<> lanes(i64, u32) const { return {}; }
  CINCH_MEMBER void set(i64, u32, Tuple<>) {}
  CINCH_MEMBER void set_one(i64, Tuple<>, u32) {}
  CINCH_MEMBER Tuple<> one_everywhere(i64) const { return {}; }
};
template <u32 N, class E, class... R>
struct Ends<N, E, R...> {
  Held<E> head[(N + W - 1) / W * W];
  Ends<N, R...> tail;
  CINCH_MEMBER Tuple<E, R...> lanes(i64 place, u32 count) const {
    return {local_lanes(head + place), tail.lanes(place, count)};
  }
  CINCH_MEMBER void set(i64 place, u32 count, Tuple<E, R...> x) {
    set_local_lanes(head + place, x.head);
    tail.set(place, count, x.tail);
  }
  // Lane l of x becomes element `place`.
  CINCH_MEMBER void set_one(i64 place, Tuple<E, R...> x, u32 l) {
    head[place] = x.head[l];
    tail.set_one(place, x.tail, l);
  }
  CINCH_MEMBER Tuple<E, R...> one_everywhere(i64 place) const {
    return {Lanes<E>(head[place]), tail.one_everywhere(place)};
  }
};

// Buffers as the scan sees them: a function that loads and one that stores.
template <class Load, class Store>
struct StoredRow {
  const Load& load;
  const Store& store;
  template <class T>
  CINCH_MEMBER void set(i64 place, u32 count, T x) const {
    store(place, count, x);
  }
  CINCH_MEMBER auto lanes(i64 place, u32 count) const { return load(place, count); }
};

// Scans `len` <= Capacity elements in place. Fewer than 2^32 elements make fewer than 2^22
// partials, so two levels of ends are enough.
template <u32 Capacity, class... E, class Join, class Row>
static __attribute__((noinline, unused)) void scan_row(const Join& join, Row& row, u32 len) {
  constexpr u32 kEnds = Capacity / kTile == 0 ? 1 : Capacity / kTile;
  if (len == 0 || len > Capacity) return;
  OwnedLocals<E...> owned;
  const LocalArrays<E...> local = owned.refs();
  Ends<kEnds, E...> ends;
  const u32 tiles = (len - 1) / kTile + 1;
  for (u32 t = 0; t < tiles; ++t) {
    const u32 count = least(len - t * kTile, kTile);
    for (u32 i = 0; i < count; i += W) {
      local.set(i, row.lanes(t * kTile + i, least(count - i, u32(W))));
    }
    scan_local(join, local, count);
    for (u32 i = 0; i < count; i += W) {
      row.set(t * kTile + i, least(count - i, u32(W)), local.lanes(i));
    }
    ends.set_one(t, local.lanes((count - 1) / W * W), (count - 1) % W);
  }
  if constexpr (Capacity > kTile) {
    if (tiles == 1) return;
    scan_row<kEnds, E...>(join, ends, tiles - 1);
    for (u32 i = kTile; i < len; i += W) {
      const u32 count = least(len - i, u32(W));
      row.set(i, count,
              join(ends.one_everywhere(i / kTile - 1), row.lanes(i, count), first_lanes(count)));
    }
  }
}
constexpr u32 kMaxPartials = 1u << 22;

}  // namespace cinch
