// tuples.h: reductions by a program's own combiner over tuples of lanes. A truth value beside the
// members says whether any element took part. Needs reduce.h.

namespace cinch {

template <class... E>
struct Tuple;
template <>
struct Tuple<> {};
template <class E, class... R>
struct Tuple<E, R...> {
  Lanes<E> head;
  Tuple<R...> tail;
};

CINCH_CALL Tuple<> tuple_of() {
  return {};
}
template <class E, class... R, class... V>
CINCH_CALL Tuple<E, R...> make_tuple_of(Lanes<E> head, V... tail) {
  if constexpr (sizeof...(R) == 0) {
    return {head, {}};
  } else {
    return {head, make_tuple_of<R...>(tail...)};
  }
}

CINCH_CALL Tuple<> choose(Truth, Tuple<>, Tuple<>) {
  return {};
}
template <class E, class... R>
CINCH_CALL Tuple<E, R...> choose(Truth c, Tuple<E, R...> a, Tuple<E, R...> b) {
  return {op_select(c, a.head, b.head), choose(c, a.tail, b.tail)};
}
template <int Distance>
CINCH_CALL Tuple<> tuple_down(Tuple<>) {
  return {};
}
template <int Distance, class E, class... R>
CINCH_CALL Tuple<E, R...> tuple_down(Tuple<E, R...> x) {
  return {lanes_down<Distance>(x.head), tuple_down<Distance>(x.tail)};
}
CINCH_CALL void clear_tuple(Tuple<>&) {}
template <class E, class... R>
CINCH_CALL void clear_tuple(Tuple<E, R...>& x) {
  x.head = Lanes<E>(0);
  clear_tuple(x.tail);
}

// A tuple, and the lanes in which it takes part.
template <class... E>
struct Part {
  Tuple<E...> value;
  Truth has;
};
// Joins b to a. If only one of them takes part, it is the result.
template <class Join, class... E>
CINCH_CALL Part<E...> join_parts(const Join& join, Part<E...> a, Part<E...> b) {
  const Truth both = a.has & b.has;
  const Tuple<E...> one = choose(a.has, a.value, b.value);
  if (!any_lane(both)) return {one, a.has | b.has};
  return {choose(both, join(a.value, b.value, both), one), a.has | b.has};
}
template <int Distance, class Join, class... E>
CINCH_CALL Part<E...> fold_part(const Join& join, Part<E...> x) {
  if constexpr (Distance == 0) {
    return x;
  } else {
    const Part<E...> shifted = {tuple_down<Distance>(x.value), lanes_down<Distance>(x.has)};
    return fold_part<Distance / 2>(join, join_parts(join, x, shifted));
  }
}

// Replaces members that are the same in all columns of a whole tile (Same has a bit for each) by
// those of `same`. Leaves the others as they are in `to`.
template <unsigned Same>
CINCH_CALL Tuple<> with_same(Tuple<>, Tuple<>) {
  return {};
}
template <unsigned Same, class E, class... R>
CINCH_CALL Tuple<E, R...> with_same(Tuple<E, R...> x, Tuple<E, R...> same) {
  return {Same & 1 ? same.head : x.head, with_same<(Same >> 1)>(x.tail, same.tail)};
}
template <unsigned Same>
CINCH_CALL void set_others(Tuple<>&, Tuple<>) {}
template <unsigned Same, class E, class... R>
CINCH_CALL void set_others(Tuple<E, R...>& to, Tuple<E, R...> x) {
  if constexpr (!(Same & 1)) to.head = x.head;
  set_others<(Same >> 1)>(to.tail, x.tail);
}

// The columns of one tile. If a member is the same in all columns, such as a count of elements,
// `same` holds it while rows of a whole tile are taken in. What a join computes from such members
// alone is then computed once for a row.
template <class... E>
struct TupleColumns {
  Part<E...> column[kColumnVectors];
  Tuple<E...> same;
  bool is_whole;

  CINCH_MEMBER void clear() {
    is_whole = false;
    for (int i = 0; i < kColumnVectors; ++i) {
      clear_tuple(column[i].value);
      column[i].has = Truth(0);
    }
  }
  template <class Join>
  CINCH_MEMBER void take(const Join& join, u32 place, Tuple<E...> x, Truth part) {
    if (!any_lane(part)) return;
    Part<E...>& c = column[place / W % kColumnVectors];
    c = join_parts(join, c, Part<E...>{x, part});
  }
  template <unsigned Same, class Join>
  CINCH_MEMBER void take_of_row(const Join& join, u32 place, Tuple<E...> x) {
    Tuple<E...>& c = column[place / W % kColumnVectors].value;
    if (place < kColumns) {
      set_others<Same>(c, x);
    } else {
      set_others<Same>(c, join(with_same<Same>(c, same), x, all_lanes()));
    }
  }
  // Only those members of x count that are the same in all columns.
  template <class Join>
  CINCH_MEMBER void end_row(const Join& join, u32 first, Tuple<E...> x) {
    same = first == 0 ? x : join(same, x, all_lanes());
    is_whole = true;
  }
  // The result of a whole tile. Columns stay alike from step to step.
  template <unsigned Same, class Join>
  __attribute__((noinline)) Part<E...> result_of_rows(const Join& join) {
    const auto join_same = [&](Tuple<E...> a, Tuple<E...> b) __attribute__((always_inline)) {
      return join(with_same<Same>(a, same), with_same<Same>(b, same), all_lanes());
    };
#pragma clang loop unroll(disable)
    for (int step = kColumnVectors / 2; step >= 1; step /= 2) {
#pragma clang loop unroll(disable)
      for (int i = 0; i < step; ++i) {
        set_others<Same>(column[i].value, join_same(column[i].value, column[i + step].value));
      }
      same = join(same, same, all_lanes());
    }
    return {fold_same<Same, W / 2>(join, column[0].value), all_lanes()};
  }
  template <unsigned Same, int Distance, class Join>
  CINCH_MEMBER Tuple<E...> fold_same(const Join& join, Tuple<E...> x) {
    const Tuple<E...> whole = with_same<Same>(x, same);
    if constexpr (Distance == 0) {
      return whole;
    } else {
      const Tuple<E...> joined =
          join(whole, with_same<Same>(tuple_down<Distance>(x), same), all_lanes());
      same = joined;
      return fold_same<Same, Distance / 2>(join, joined);
    }
  }
  // Lane 0 of the result counts.
  template <class Join>
  __attribute__((noinline)) Part<E...> result(const Join& join) {
#pragma clang loop unroll(disable)
    for (int step = kColumnVectors / 2; step >= 1; step /= 2) {
#pragma clang loop unroll(disable)
      for (int i = 0; i < step; ++i) column[i] = join_parts(join, column[i], column[i + step]);
    }
    return fold_part<W / 2>(join, column[0]);
  }
};

// Arrays of tuples, member by member.
template <class... E>
struct TupleArray;
template <>
struct TupleArray<> {
  CINCH_MEMBER void set(u32, Tuple<>) {}
  CINCH_MEMBER Tuple<> lanes(u32) const { return {}; }
};
template <class E, class... R>
struct TupleArray<E, R...> {
  Held<E> head[kTile];
  TupleArray<R...> tail;
  CINCH_MEMBER void set(u32 place, Tuple<E, R...> x) {
    head[place] = x.head[0];
    tail.set(place, x.tail);
  }
  CINCH_MEMBER Tuple<E, R...> lanes(u32 place) const {
    return {local_lanes(head + place), tail.lanes(place)};
  }
};

template <class... E>
struct TupleLevels {
  TupleArray<E...> held[kLevels];
  i32 has[kLevels][kTile];
  u32 total[kLevels], count[kLevels];

  CINCH_MEMBER void clear() {
    for (int l = 0; l < kLevels; ++l) total[l] = count[l] = 0;
  }
  CINCH_MEMBER Part<E...> lanes(int level, u32 place) const {
    return {held[level].lanes(place), local_lanes(has[level] + place)};
  }
  template <class Join>
  void push(const Join& join, int level, Part<E...> x) {
    const u32 place = count[level]++;
    held[level].set(place, x.value);
    has[level][place] = x.has[0];
    ++total[level];
    if (count[level] == kTile && level + 1 < kLevels) flush(join, level);
  }
  template <class Join>
  void flush(const Join& join, int level) {
    TupleColumns<E...> columns;
    columns.clear();
    for (u32 i = 0; i < count[level]; i += W) {
      const Part<E...> x = lanes(level, i);
      columns.take(join, i, x.value, x.has & first_lanes(count[level] - i));
    }
    count[level] = 0;
    push(join, level + 1, columns.result(join));
  }
  template <class Join>
  Part<E...> result(const Join& join) {
    if (total[0] == 0) {
      Part<E...> nothing;
      clear_tuple(nothing.value);
      nothing.has = Truth(0);
      return nothing;
    }
    int level = 0;
    for (; level + 1 < kLevels && total[level] != 1; ++level) {
      if (count[level] != 0) flush(join, level);
    }
    return lanes(level, 0);
  }
};

// finish_reduce: `load(first, count)` returns a Part of W stored partials.
template <class... E, class Join, class Load>
CINCH_CALL Part<E...> reduce_stored_parts(const Join& join, i64 count, const Load& load) {
  TupleLevels<E...> levels;
  levels.clear();
  for (i64 tile = 0; tile < count; tile += kTile) {
    const u32 len = u32(least(count - tile, i64(kTile)));
    TupleColumns<E...> columns;
    columns.clear();
    for (u32 i = 0; i < len; i += W) {
      const Part<E...> x = load(tile + i, least(len - i, u32(W)));
      columns.take(join, i, x.value, x.has & first_lanes(len - i));
    }
    levels.push(join, 0, columns.result(join));
  }
  return levels.result(join);
}

}  // namespace cinch
