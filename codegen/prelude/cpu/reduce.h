// reduce.h: reductions in the language's order. A tile of 1024 has 8 rows of 128 columns. Each
// column takes in its rows in order. Then column j takes in j + 64, j + 32, … j + 1. Tile results
// are reduced by the same rule until one is left. Missing elements keep their place and take no
// part. Needs memory.h.
//
// A combiner is one of the operations below over lanes, or a function of two tuples of lanes and of
// the lanes where both take part. An operation's identity joins exactly, so it may replace missing
// elements.

namespace cinch {

constexpr u32 kColumns = 128;
constexpr int kColumnVectors = kColumns / W;

#define CINCH_OPERATION(Name, function, identity_value) \
  template <class E>                                    \
  struct Name {                                         \
    using Element = E;                                  \
    static E identity() {                               \
      return identity_value;                            \
    }                                                   \
    template <class V>                                  \
    CINCH_CALL V join(V a, V b) {                       \
      return function;                                  \
    }                                                   \
  };
template <class E>
CINCH_CALL E highest_of() {
  if constexpr (lang::kSame<E, bool>) {
    return true;
  } else if constexpr (lang::kIsFloat<E>) {
    return lang::infinity_of<E>();
  } else if constexpr (lang::kIsSigned<E>) {
    return E(~lang::Element<lang::UnsignedLike<E>>(0) >> 1);
  } else {
    return E(~E(0));
  }
}
template <class E>
CINCH_CALL E lowest_of() {
  if constexpr (lang::kSame<E, bool>) {
    return false;
  } else if constexpr (lang::kIsFloat<E>) {
    return -lang::infinity_of<E>();
  } else if constexpr (lang::kIsSigned<E>) {
    return E(-highest_of<E>() - 1);
  } else {
    return 0;
  }
}
template <class E>
CINCH_CALL E all_ones() {
  if constexpr (lang::kSame<E, bool>) {
    return true;
  } else {
    return E(~E(0));
  }
}
CINCH_OPERATION(OpAdd, lang::add(a, b), lang::kIsFloat<E> ? E(-0.0) : E(0))
CINCH_OPERATION(OpMul, lang::mul(a, b), E(1))
CINCH_OPERATION(OpMin, lang::min(a, b), highest_of<E>())
CINCH_OPERATION(OpMax, lang::max(a, b), lowest_of<E>())
CINCH_OPERATION(OpAnd, V(a& b), all_ones<E>())
CINCH_OPERATION(OpOr, V(a | b), E(0))
CINCH_OPERATION(OpXor, V(a ^ b), E(0))
#undef CINCH_OPERATION

// Joins the lanes of a vector as a tree. Lane 0 of the result counts.
template <int Distance, class V, class Join>
CINCH_CALL V fold_lanes(V x, const Join& join) {
  if constexpr (Distance == 0) {
    return x;
  } else {
    return fold_lanes<Distance / 2>(join(x, lanes_down<Distance>(x)), join);
  }
}

// ---- operations ----

// The columns of one tile.
template <class Op>
struct Columns {
  using E = typename Op::Element;
  Lanes<E> column[kColumnVectors];

  CINCH_MEMBER void clear() {
    for (int i = 0; i < kColumnVectors; ++i) column[i] = wide<E>(Op::identity());
  }
  // Elements place … place + W - 1 of the tile; place is a multiple of W.
  CINCH_MEMBER void take(u32 place, Lanes<E> x, Truth part) {
    take_in(column[place / W % kColumnVectors], x, part);
  }
  // The same for one column, which a loop along it keeps in registers.
  CINCH_MEMBER static void take_in(Lanes<E>& c, Lanes<E> x, Truth part) {
    c = Op::join(c, op_select(part, x, wide<E>(Op::identity())));
  }
  E result();
};
template <class Op>
CINCH_HELPER_OF typename Op::Element Columns<Op>::result() {
  for (int step = kColumnVectors / 2; step >= 1; step /= 2) {
    for (int i = 0; i < step; ++i) column[i] = Op::join(column[i], column[i + step]);
  }
  const auto join = [](Lanes<E> a, Lanes<E> b) { return Op::join(a, b); };
  return lane_of<E>(fold_lanes<W / 2>(column[0], join), 0);
}

// A tile's reduction if no order changes the result: integers, truth values, and the least or
// greatest of floats.
template <class Op>
struct AnyOrder {
  using E = typename Op::Element;
  Lanes<E> all;

  CINCH_MEMBER void clear() { all = wide<E>(Op::identity()); }
  CINCH_MEMBER void take(u32, Lanes<E> x, Truth part) {
    all = Op::join(all, op_select(part, x, wide<E>(Op::identity())));
  }
  CINCH_MEMBER E result() const {
    const auto join = [](Lanes<E> a, Lanes<E> b) { return Op::join(a, b); };
    return lane_of<E>(fold_lanes<W / 2>(all, join), 0);
  }
  // The result of each lane, if lanes are rows.
  CINCH_MEMBER Lanes<E> of_lanes() const { return all; }
};
// Comparisons find the least or greatest number. They take -0 for +0, so a separate mask notes
// whether the winning zero was there.
template <class E, bool Least>
struct AnyOrderBound {
  using Bits = lang::UnsignedLike<Lanes<E>>;
  static CINCH_MEMBER E identity() {
    return Least ? lang::infinity_of<E>() : -lang::infinity_of<E>();
  }
  Lanes<E> all;
  Bits winning_zeros;  // all bits of lanes that met such a zero

  CINCH_MEMBER void clear() {
    all = wide<E>(identity());
    winning_zeros = Bits(0);
  }
  // Comparisons with NaN are false, so NaN loses.
  CINCH_MEMBER void take(u32, Lanes<E> x, Truth part) {
    const Lanes<E> y = op_select(part, x, wide<E>(identity()));
    all = lang::select(Least ? y < all : y > all, y, all);
    winning_zeros |= Bits(lang::bits_of(y) == lang::bits_of(wide<E>(Least ? E(-0.0) : E(0))));
  }
  CINCH_MEMBER E result() const {
    const auto join = [](Lanes<E> a, Lanes<E> b) {
      return lang::select(Least ? b < a : b > a, b, a);
    };
    const auto either = [](Bits a, Bits b) { return a | b; };
    const E bound = fold_lanes<W / 2>(all, join)[0];
    const bool has_zero = fold_lanes<W / 2>(winning_zeros, either)[0] != 0;
    return bound == 0 ? (has_zero == Least ? E(-0.0) : E(0)) : bound;
  }
  CINCH_MEMBER Lanes<E> of_lanes() const {
    using Signed = lang::SignedLike<Lanes<E>>;
    const Bits win = lang::bits_of(wide<E>(Least ? E(-0.0) : E(0)));
    const Bits lose = lang::bits_of(wide<E>(Least ? E(0) : E(-0.0)));
    const Bits zero = (winning_zeros & win) | (~winning_zeros & lose);
    const Bits is_zero = Bits(Signed(all == wide<E>(E(0))));
    return lang::float_of_bits<Lanes<E>>((is_zero & zero) | (~is_zero & lang::bits_of(all)));
  }
};
template <>
struct AnyOrder<OpMin<f32>> : AnyOrderBound<f32, true> {};
template <>
struct AnyOrder<OpMin<f64>> : AnyOrderBound<f64, true> {};
template <>
struct AnyOrder<OpMax<f32>> : AnyOrderBound<f32, false> {};
template <>
struct AnyOrder<OpMax<f64>> : AnyOrderBound<f64, false> {};

// The same for numbers without a negative zero: comparisons are enough.
template <class Op>
struct Magnitudes {
  using E = typename Op::Element;
  static constexpr bool kLeast = lang::kSame<Op, OpMin<E>>;
  Lanes<E> all;

  CINCH_MEMBER void clear() { all = wide<E>(Op::identity()); }
  CINCH_MEMBER void take(u32, Lanes<E> x, Truth part) {
    all = join(all, op_select(part, x, wide<E>(Op::identity())));
  }
  static CINCH_MEMBER Lanes<E> join(Lanes<E> a, Lanes<E> b) {
    return lang::select(kLeast ? b < a : b > a, b, a);
  }
  CINCH_MEMBER E result() const {
    return fold_lanes<W / 2>(all, [](Lanes<E> a, Lanes<E> b) { return join(a, b); })[0];
  }
  CINCH_MEMBER Lanes<E> of_lanes() const { return all; }
};

// The element as an array holds it. Truth values are i32 0 and -1.
template <class E>
struct HeldElement {
  using Type = E;
};
template <>
struct HeldElement<bool> {
  using Type = i32;
};
template <class E>
using Held = typename HeldElement<E>::Type;
template <class E>
CINCH_CALL Held<E> hold(E x) {
  if constexpr (lang::kSame<E, bool>) {
    return -i32(x);
  } else {
    return x;
  }
}
template <class E>
CINCH_CALL E release(Held<E> x) {
  if constexpr (lang::kSame<E, bool>) {
    return x != 0;
  } else {
    return x;
  }
}

template <class Op>
CINCH_HELPER_OF typename Op::Element reduce_held(const Held<typename Op::Element>* x, u32 count) {
  Columns<Op> columns;
  columns.clear();
  for (u32 i = 0; i < count; i += W) {
    columns.take(i, local_lanes(x + i), first_lanes(count - i));
  }
  return columns.result();
}

// Reduces the results of tiles by levels of 1024, as they arrive. Four levels hold more than 2^32
// elements.
constexpr int kLevels = 4;
template <class Op>
struct Levels {
  using E = typename Op::Element;
  Held<E> held[kLevels][kTile];
  u32 total[kLevels], count[kLevels];

  CINCH_MEMBER void clear() {
    for (int l = 0; l < kLevels; ++l) total[l] = count[l] = 0;
  }
  CINCH_MEMBER void push(int level, E x) {
    held[level][count[level]++] = hold<E>(x);
    ++total[level];
    if (count[level] == kTile && level + 1 < kLevels) flush(level);
  }
  void flush(int level);
  E result();
};
template <class Op>
CINCH_HELPER_OF void Levels<Op>::flush(int level) {
  const E x = reduce_held<Op>(held[level], count[level]);
  count[level] = 0;
  push(level + 1, x);
}
template <class Op>
CINCH_HELPER_OF typename Op::Element Levels<Op>::result() {
  if (total[0] == 0) return Op::identity();
  int level = 0;
  for (; level + 1 < kLevels && total[level] != 1; ++level) {
    if (count[level] != 0) flush(level);
  }
  return release<E>(held[level][0]);
}

// finish_reduce: `load(first, count)` returns W stored partials.
template <class Op, class Load>
CINCH_CALL typename Op::Element reduce_loaded(i64 count, const Load& load) {
  Levels<Op> levels;
  levels.clear();
  for (i64 tile = 0; tile < count; tile += kTile) {
    const u32 len = u32(least(count - tile, i64(kTile)));
    Columns<Op> columns;
    columns.clear();
    for (u32 i = 0; i < len; i += W) {
      columns.take(i, load(tile + i, least(len - i, u32(W))), first_lanes(len - i));
    }
    levels.push(0, columns.result());
  }
  return levels.result();
}
// The same for partials that are not packed.
template <class Op>
CINCH_HELPER_OF typename Op::Element reduce_stored(i64 count, const u8* partials) {
  return reduce_loaded<Op>(count, [&](i64 first, u32 num) {
    return load_lanes<typename Op::Element>(partials, first, num);
  });
}

}  // namespace cinch

// Linked instances for an operation over elements of a type.
#define CINCH_LINKED_REDUCTION(Op, E)                                   \
  namespace cinch {                                                     \
  CINCH_INSTANCE E Columns<Op<E>>::result();                            \
  CINCH_INSTANCE E reduce_held<Op<E>>(const Held<E>* x, u32 count);     \
  CINCH_INSTANCE void Levels<Op<E>>::flush(int level);                  \
  CINCH_INSTANCE E Levels<Op<E>>::result();                             \
  CINCH_INSTANCE E reduce_stored<Op<E>>(i64 count, const u8* partials); \
  }
