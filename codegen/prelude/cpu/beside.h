// beside.h: rows beside one another. Each lane of a vector works on a row of its own, and a loop
// goes along all rows together. Needs tuples.h.

namespace cinch {

// Rows that go together. Packed elements of so many rows begin and end at whole bytes.
constexpr u32 kRowsBeside = W < 8 ? 8 : W;

// Rows whose elements lie one after the other in a buffer, up to one end.
struct RowRuns {
  i64 first, stride, left;  // of the first lane's row; elements from there on
  u32 len;
  bool is_whole;  // are all elements of all rows there?

  CINCH_MEMBER static RowRuns of(i64 first, i64 stride, i64 end, u32 len, u32 active) {
    const i64 left = end - first;
    return {first, stride, left, len, active == W && left >= i64(W - 1) * stride + i64(len)};
  }
  CINCH_MEMBER i64 place(u32 lane, u32 j) const { return first + i64(lane) * stride + i64(j); }
  CINCH_MEMBER Lanes<i64> places(u32 j) const {
    return lang::convert<i64>(lane_numbers()) * wide(stride) + wide(first + i64(j));
  }
  // The lanes in which element j is there.
  CINCH_MEMBER Truth live(u32 j, Truth rows) const {
    if (is_whole) return rows;
    return rows & __builtin_convertvector(places(j) < wide(first + left), Truth);
  }
};
// Element j of each row; 0 where it is not there.
template <class S>
CINCH_CALL Lanes<S> load_of_rows(const u8* buffer, const RowRuns& rows, u32 j, Truth live) {
  if (__builtin_expect(rows.is_whole, 1)) {
    Lanes<S> x = Lanes<S>(S(0));
#pragma unroll
    for (u32 l = 0; l < W; ++l) x[l] = load_one<S>(buffer, rows.place(l, j));
    return x;
  }
  LaneArray<S> some = {};
#pragma clang loop unroll(disable)
  for (u32 rest = bits_of_truth(rows.live(j, live)); rest != 0; rest &= rest - 1) {
    const u32 l = u32(__builtin_ctz(rest));
    some.at[l] = load_one<S>(buffer, rows.place(l, j));
  }
  return __builtin_bit_cast(Lanes<S>, some);
}
template <class S>
CINCH_CALL void store_of_rows(u8* buffer, const RowRuns& rows, u32 j, Lanes<S> x, Truth live) {
  const auto values = lane_array(x);
  if (__builtin_expect(rows.is_whole, 1)) {
#pragma unroll
    for (u32 l = 0; l < W; ++l) store_one<S>(buffer, rows.place(l, j), values.at[l]);
    return;
  }
#pragma clang loop unroll(disable)
  for (u32 rest = bits_of_truth(rows.live(j, live)); rest != 0; rest &= rest - 1) {
    const u32 l = u32(__builtin_ctz(rest));
    store_one<S>(buffer, rows.place(l, j), values.at[l]);
  }
}
// buffer[index] if `live`, else 0. Neighbouring rows often read neighbouring elements.
template <class S, class I>
CINCH_CALL Lanes<S> load_beside(const u8* buffer, I index, Truth live) {
  const u32 bits = bits_of_truth(live);
  if constexpr (sizeof(lang::Element<I>) == 4) {
    const auto places = __builtin_bit_cast(Lanes<u32>, index);
    const u32 first = places[0];
    const bool is_row = !any_lane(Truth(places != lane_numbers() + wide(first)));
    if (bits == (1u << W) - 1 && is_row && first <= 0u - u32(W)) {
      return load_lanes<S>(buffer, i64(first), u32(W));
    }
  }
  return gather_lanes<S>(buffer, index, live);
}
// buffer[index] = x if `live`.
template <class S, class I>
CINCH_CALL void store_beside(u8* buffer, I index, Lanes<S> x, Truth live) {
  if constexpr (sizeof(lang::Element<I>) == 4) {
    const auto places = __builtin_bit_cast(Lanes<u32>, index);
    const bool is_row = !any_lane(Truth(places != lane_numbers() + wide(u32(places[0]))));
    if (is_row) return store_run<S>(buffer, places, x, live);
  }
  scatter_lanes<S>(buffer, index, x, live);
}
// Element j of the rows from `row` on, in a stage of rows of `len` elements.
template <class S>
CINCH_CALL void stage_of_rows(S* stage, u32 row, u32 len, u32 j, Lanes<S> x) {
  const auto values = lane_array(x);
#pragma unroll
  for (u32 l = 0; l < W; ++l) stage[(row + l) * len + j] = values.at[l];
}

// What was drawn for element j of the rows from `row` on, in a stage of rows of `len` elements.
template <class S>
CINCH_CALL Lanes<S> staged_of_rows(const S* stage, u32 row, u32 len, u32 j) {
  LaneArray<S> x;
#pragma unroll
  for (u32 l = 0; l < W; ++l) x.at[l] = stage[(row + l) * len + j];
  return __builtin_bit_cast(Lanes<S>, x);
}

// A local array of each row.
template <class E, u32 Len>
struct LocalOfRows {
  Lanes<E> at[Len];
};

// An ordered reduction of each row. Long: rows may have more elements than a tile.
template <class Op, bool Long>
struct RowsOrdered {
  using E = typename Op::Element;
  Lanes<E> column[kColumns];
  Lanes<E> tiles[Long ? kColumns : 1];

  CINCH_MEMBER void take(u32 place, Lanes<E> x, Truth part) {
    const Lanes<E> y = op_select(part, x, wide<E>(Op::identity()));
    if constexpr (Long) {
      if (place != 0 && place % kTile == 0) end_tile(place / kTile - 1, kTile);
    }
    const u32 in_tile = place % kTile;
    Lanes<E>& c = column[in_tile % kColumns];
    c = in_tile < kColumns ? y : Op::join(c, y);
  }
  CINCH_MEMBER Lanes<E> result(u32 len) {
    if (len == 0) return wide<E>(Op::identity());
    if constexpr (Long) {
      if (len > kTile) {
        const u32 last = (len - 1) / kTile;
        end_tile(last, len - last * kTile);
        return fold(tiles, last + 1);
      }
    }
    return fold(column, len);
  }

 private:
  CINCH_MEMBER void end_tile(u32 tile, u32 len) {
    const Lanes<E> x = fold(column, len);
    Lanes<E>& c = tiles[tile % kColumns];
    c = tile < kColumns ? x : Op::join(c, x);
  }
  CINCH_MEMBER static Lanes<E> fold(Lanes<E>* c, u32 len) {
    u32 num = least(len, kColumns);
#pragma clang loop unroll(disable)
    for (u32 step = kColumns / 2; step >= 1; step /= 2) {
#pragma clang loop unroll(disable)
      for (u32 i = 0; i + step < num; ++i) c[i] = Op::join(c[i], c[i + step]);
      num = least(num, step);
    }
    return c[0];
  }
};

// The same by a program's own combiner.
template <bool Long, class... E>
struct RowsOrderedTuples {
  Part<E...> column[kColumns];
  Part<E...> tiles[Long ? kColumns : 1];

  template <class Join>
  CINCH_MEMBER void take(const Join& join, u32 place, Tuple<E...> x, Truth part) {
    if constexpr (Long) {
      if (place != 0 && place % kTile == 0) end_tile(join, place / kTile - 1, kTile);
    }
    const u32 in_tile = place % kTile;
    Part<E...>& c = column[in_tile % kColumns];
    const Part<E...> y = {x, part};
    c = in_tile < kColumns ? y : join_parts(join, c, y);
  }
  template <class Join>
  CINCH_MEMBER Part<E...> result(const Join& join, u32 len) {
    if (len == 0) {
      Part<E...> nothing;
      clear_tuple(nothing.value);
      nothing.has = Truth(0);
      return nothing;
    }
    if constexpr (Long) {
      if (len > kTile) {
        const u32 last = (len - 1) / kTile;
        end_tile(join, last, len - last * kTile);
        return fold(join, tiles, last + 1);
      }
    }
    return fold(join, column, len);
  }

 private:
  template <class Join>
  CINCH_MEMBER void end_tile(const Join& join, u32 tile, u32 len) {
    const Part<E...> x = fold(join, column, len);
    Part<E...>& c = tiles[tile % kColumns];
    c = tile < kColumns ? x : join_parts(join, c, x);
  }
  template <class Join>
  CINCH_MEMBER static Part<E...> fold(const Join& join, Part<E...>* c, u32 len) {
    u32 num = least(len, kColumns);
#pragma clang loop unroll(disable)
    for (u32 step = kColumns / 2; step >= 1; step /= 2) {
#pragma clang loop unroll(disable)
      for (u32 i = 0; i + step < num; ++i) c[i] = join_parts(join, c[i], c[i + step]);
      num = least(num, step);
    }
    return c[0];
  }
};

}  // namespace cinch
