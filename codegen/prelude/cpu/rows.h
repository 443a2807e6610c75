// rows.h: transforms of a row in a local array: butterflies, and products with a matrix. Needs
// scan.h.

namespace cinch {

// Lane l takes lane l ^ Distance.
template <int Distance, class V, int... I>
CINCH_CALL V swap_lanes(V x, Indices<int, I...>) {
  return __builtin_shufflevector(x, x, (I ^ Distance)...);
}
// Takes lanes without the bit Distance from a, the others from b.
template <int Distance, class V, int... I>
CINCH_CALL V merge_lanes(V a, V b, Indices<int, I...>) {
  return __builtin_shufflevector(a, b, ((I & Distance) != 0 ? W + I : I)...);
}

// -1 in lanes with the bit Distance, 1 in the others.
template <class E, int Distance, int... I>
CINCH_CALL Lanes<E> butterfly_signs(Indices<int, I...>) {
  return Lanes<E>{E((I & Distance) != 0 ? -1 : 1)...};
}
// One butterfly at a distance below W: sums in lanes without the bit Distance, differences in the
// others. A product with 1 or -1 is exact, so a fused operation rounds like the sum or difference.
template <class E, int Distance>
CINCH_CALL Lanes<E> butterfly_of_lanes(Lanes<E> x) {
  const Lanes<E> other = swap_lanes<Distance>(x, LaneIndices{});
#if defined(__FMA__) || defined(__aarch64__)
  if constexpr (lang::kSame<E, f32> || lang::kSame<E, f64>) {
    return __builtin_elementwise_fma(x, butterfly_signs<E, Distance>(LaneIndices{}), other);
  }
#endif
  return merge_lanes<Distance>(lang::add(x, other), lang::sub(other, x), LaneIndices{});
}
// Butterflies at the distances below W (and Len).
template <class E, u32 Len, int Distance = 1>
CINCH_CALL Lanes<E> butterflies_of_lanes(Lanes<E> x) {
  if constexpr (Distance < W && Distance < int(Len)) {
    x = butterfly_of_lanes<E, Distance>(x);
    return butterflies_of_lanes<E, Len, 2 * Distance>(x);
  } else {
    return x;
  }
}

// 2^Stages vectors at a distance of `distance`, and their butterflies.
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

// Num neighbouring vectors, so that what they share is loaded once.
template <class E, int Num>
struct Neighbours {
  Lanes<E> at[Num];
};

// The value of column `Column` of a tile after columns at `Distance` and more were joined: sums of
// products of row[k] and matrix[k * Len + j], for Num * W neighbouring j.
template <u32 Len, u32 Column, u32 Distance, int Num, class E>
CINCH_CALL Neighbours<E, Num> column_of_products(const LocalArray<E>& row, const u8* matrix, u32 j,
                                                 u32 active) {
  constexpr u32 kColumns = 128;
  using Sums = Neighbours<E, Num>;
  if constexpr (Distance == kColumns) {
    const auto product = [&](u32 k, int v) {
      const Lanes<E> other = load_lanes<E>(matrix, i64(k) * Len + j + u32(v * W), active);
      return lang::mul(wide<E>(release<E>(row.at[k])), other);
    };
    Sums sums;
#pragma unroll
    for (int v = 0; v < Num; ++v) sums.at[v] = product(Column, v);
    if constexpr (Column + kColumns < Len) {
#pragma clang loop unroll(disable)
      for (u32 k = Column + kColumns; k < Len; k += kColumns) {
#pragma unroll
        for (int v = 0; v < Num; ++v) sums.at[v] = lang::add(sums.at[v], product(k, v));
      }
    }
    return sums;
  } else {
    Sums sums = column_of_products<Len, Column, 2 * Distance, Num>(row, matrix, j, active);
    if constexpr (Column + Distance < (Len < kColumns ? Len : kColumns)) {
      const Sums others =
          column_of_products<Len, Column + Distance, 2 * Distance, Num>(row, matrix, j, active);
#pragma unroll
      for (int v = 0; v < Num; ++v) sums.at[v] = lang::add(sums.at[v], others.at[v]);
    }
    return sums;
  }
}

// As many vectors as leave registers for a sum of each at each of seven distances.
#if defined(__AVX512F__)
constexpr int kMostNeighbours = 4;
#else
constexpr int kMostNeighbours = 2;
#endif

template <class V, int... I>
CINCH_CALL V reverse_lanes(V x, Indices<int, I...>) {
  return __builtin_shufflevector(x, x, (W - 1 - I)...);
}

// Sums over the rows that are multiples of Stride, in the columns below Len / Stride. If the matrix
// folds here, even multiples have the same numbers in mirrored columns, and odd multiples have them
// with the other sign. So have their sums, except for the signs of zeros.
template <u32 Len, u32 Folds, u32 Stride, class E>
CINCH_CALL void sum_products(const LocalArray<E>& row, const u8* matrix, LocalArray<E>& to) {
  constexpr u32 kWidth = Len / Stride;
  constexpr bool kFolds = Folds > 0 && kWidth % (2 * W) == 0;
  constexpr u32 kEnd = kFolds ? kWidth / 2 : kWidth;
  constexpr int kNum = kEnd % (kMostNeighbours * W) == 0 ? kMostNeighbours
                       : kEnd % (2 * W) == 0             ? 2
                                                         : 1;
  if constexpr (kFolds) sum_products<Len, Folds - 1, 2 * Stride>(row, matrix, to);
#pragma clang loop unroll(disable)
  for (u32 j = 0; j < kEnd; j += kNum * W) {
    const u32 active = kEnd % W == 0 ? u32(W) : least(u32(W), kEnd - j);
    constexpr u32 kFirst = kFolds ? Stride : 0, kDistance = kFolds ? 2 * Stride : Stride;
    const auto sums = column_of_products<Len, kFirst, kDistance, kNum>(row, matrix, j, active);
#pragma unroll
    for (int v = 0; v < kNum; ++v) {
      const u32 at = j + u32(v * W);
      if constexpr (kFolds) {
        const Lanes<E> even = to.lanes(at);
        to.set(at, lang::add(even, sums.at[v]));
        const Lanes<E> mirrored = lang::sub(even, sums.at[v]);
        to.set(kWidth - W - at, reverse_lanes(mirrored, LaneIndices{}));
      } else {
        to.set(at, sums.at[v]);
      }
    }
  }
}

// Multiplies the row by a matrix of Len columns, stored row by row, that folds `Folds` times. A sum
// begins with +0, so no zero is negative in the end.
template <u32 Len, u32 Folds = 0, class E>
CINCH_CALL void multiply_row(const LocalArray<E>& row, const u8* matrix, LocalArray<E>& to) {
  sum_products<Len, Folds, 1>(row, matrix, to);
#pragma clang loop unroll(disable)
  for (u32 j = 0; j < Len; j += W) to.set(j, lang::add(wide<E>(E(0)), to.lanes(j)));
}

}  // namespace cinch
