// rows.h: transforms of a row that lies in a local array: butterflies, products with a matrix.
// Needs scan.h.

namespace cinch {

// Lane l takes lane l ^ Distance.
template <int Distance, class V, int... I>
CINCH_CALL V swap_lanes(V x, Indices<int, I...>) {
  return __builtin_shufflevector(x, x, (I ^ Distance)...);
}
// Lanes without the bit Distance from a, the others from b.
template <int Distance, class V, int... I>
CINCH_CALL V merge_lanes(V a, V b, Indices<int, I...>) {
  return __builtin_shufflevector(a, b, ((I & Distance) != 0 ? W + I : I)...);
}

// Butterflies at the distances below W (and Len).
template <class E, u32 Len, int Distance = 1>
CINCH_CALL Lanes<E> butterflies_of_lanes(Lanes<E> x) {
  if constexpr (Distance < W && Distance < int(Len)) {
    const Lanes<E> other = swap_lanes<Distance>(x, LaneIndices{});
    x = merge_lanes<Distance>(lang::add(x, other), lang::sub(other, x), LaneIndices{});
    return butterflies_of_lanes<E, Len, 2 * Distance>(x);
  } else {
    return x;
  }
}

// 2^Stages vectors that stand `distance` apart, and their butterflies.
template <class E, u32 Len, int Stages>
struct Butterflies {
  Butterflies<E, Len, Stages - 1> low, high;

  template <bool IsFirst>
  CINCH_MEMBER static Butterflies of(const LocalArray<E>& x, u32 place, u32 distance) {
    using Half = Butterflies<E, Len, Stages - 1>;
    const Half a = Half::template of<IsFirst>(x, place, distance);
    const Half b = Half::template of<IsFirst>(x, place + (distance << (Stages - 1)), distance);
    return {Half::sum(a, b), Half::difference(a, b)};
  }
  CINCH_MEMBER static Butterflies sum(const Butterflies& a, const Butterflies& b) {
    using Half = Butterflies<E, Len, Stages - 1>;
    return {Half::sum(a.low, b.low), Half::sum(a.high, b.high)};
  }
  CINCH_MEMBER static Butterflies difference(const Butterflies& a, const Butterflies& b) {
    using Half = Butterflies<E, Len, Stages - 1>;
    return {Half::difference(a.low, b.low), Half::difference(a.high, b.high)};
  }
  CINCH_MEMBER void store(LocalArray<E>& x, u32 place, u32 distance) const {
    low.store(x, place, distance);
    high.store(x, place + (distance << (Stages - 1)), distance);
  }
};
template <class E, u32 Len>
struct Butterflies<E, Len, 0> {
  Lanes<E> lanes;

  template <bool IsFirst>
  CINCH_MEMBER static Butterflies of(const LocalArray<E>& x, u32 place, u32) {
    const Lanes<E> own = x.lanes(place);
    if constexpr (IsFirst) return {butterflies_of_lanes<E, Len>(own)};
    return {own};
  }
  CINCH_MEMBER static Butterflies sum(const Butterflies& a, const Butterflies& b) {
    return {lang::add(a.lanes, b.lanes)};
  }
  CINCH_MEMBER static Butterflies difference(const Butterflies& a, const Butterflies& b) {
    return {lang::sub(a.lanes, b.lanes)};
  }
  CINCH_MEMBER void store(LocalArray<E>& x, u32 place, u32) const { x.set(place, lanes); }
};

constexpr int stages_below(u32 distance, u32 len) {
  int stages = 0;
  while (stages < 3 && (distance << stages) < len) ++stages;
  return stages;
}

// In place. Eight vectors are in registers for three distances at a time.
template <u32 Len, u32 Distance = u32(W), class E>
CINCH_CALL void butterflies_of_row(LocalArray<E>& x) {
  constexpr int kStages = stages_below(Distance, Len);
  constexpr u32 kSpan = Distance << kStages;
#pragma clang loop unroll(disable)
  for (u32 begin = 0; begin < Len; begin += kSpan) {
#pragma clang loop unroll(disable)
    for (u32 i = begin; i < begin + Distance; i += W) {
      using Some = Butterflies<E, Len, kStages>;
      Some::template of<Distance == u32(W)>(x, i, Distance).store(x, i, Distance);
    }
  }
  if constexpr (kSpan < Len) butterflies_of_row<Len, kSpan>(x);
}

// What column `Column` of a tile's columns has taken in when those `Distance` and more apart were
// joined: products of row[k] and matrix[k * Len + j], for W neighbouring j.
template <u32 Len, u32 Column, u32 Distance, class E>
CINCH_CALL Lanes<E> column_of_products(const LocalArray<E>& row, const u8* matrix, u32 j,
                                       u32 active) {
  constexpr u32 kColumns = 128;
  if constexpr (Distance == kColumns) {
    const auto product = [&](u32 k) {
      const Lanes<E> other = load_lanes<E>(matrix, i64(k) * Len + j, active);
      return lang::mul(wide<E>(release<E>(row.at[k])), other);
    };
    Lanes<E> sum = product(Column);
    if constexpr (Column + kColumns < Len) {
#pragma clang loop unroll(disable)
      for (u32 k = Column + kColumns; k < Len; k += kColumns) sum = lang::add(sum, product(k));
    }
    return sum;
  } else {
    const Lanes<E> sum = column_of_products<Len, Column, 2 * Distance>(row, matrix, j, active);
    if constexpr (Column + Distance < (Len < kColumns ? Len : kColumns)) {
      return lang::add(
          sum, column_of_products<Len, Column + Distance, 2 * Distance>(row, matrix, j, active));
    } else {
      return sum;
    }
  }
}

// The row times a matrix of Len columns, row by row in memory.
template <u32 Len, class E>
CINCH_CALL void multiply_row(const LocalArray<E>& row, const u8* matrix, LocalArray<E>& to) {
#pragma clang loop unroll(disable)
  for (u32 j = 0; j < Len; j += W) {
    const u32 active = Len % W == 0 ? u32(W) : least(u32(W), Len - j);
    const Lanes<E> sum = column_of_products<Len, 0, 1>(row, matrix, j, active);
    to.set(j, lang::add(wide<E>(E(0)), sum));
  }
}

}  // namespace cinch
