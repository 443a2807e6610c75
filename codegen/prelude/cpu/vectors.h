// vectors.h: lanes, masks and the kernels' argument. Every value of an element section is a vector
// of W lanes, whatever its element. Truth values are lanes of i32 that hold 0 and -1. Needs
// scalar_ops.h. Includes nothing, so it defines the few functions that compilers call by
// themselves.
//
// Functions that are not worth inlining are helpers. The text contains them if CINCH_HELPERS is 0.
// If it is 1, the text only declares them, and links those that were compiled, with 2, when Cinch
// was built.

#define CINCH_CALL static inline __attribute__((always_inline, unused))
#define CINCH_MEMBER __attribute__((always_inline))
#if !defined(CINCH_HELPERS)
#define CINCH_HELPERS 0
#endif
#if CINCH_HELPERS == 0
#define CINCH_HELPER static __attribute__((noinline, unused))
#else
#define CINCH_HELPER __attribute__((noinline))
#endif
// A helper template. The text contains the instances that are not linked.
#define CINCH_HELPER_OF __attribute__((noinline))
#if CINCH_HELPERS == 1
#define CINCH_INSTANCE extern template
#else
#define CINCH_INSTANCE template
#endif

#if CINCH_HELPERS != 1
extern "C" {
__attribute__((visibility("hidden"), weak, no_builtin)) void* memset(void* to, int value,
                                                                     unsigned long size) {
  auto* bytes = static_cast<unsigned char*>(to);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = (unsigned char)value;
  return to;
}
__attribute__((visibility("hidden"), weak, no_builtin)) void* memcpy(void* to, const void* from,
                                                                     unsigned long size) {
  auto* bytes = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = source[i];
  return to;
}
}
#endif

namespace cinch {

constexpr int W = CINCH_LANES;
constexpr u32 kTile = 1024;

// Mirrors rt::KernelArgs.
struct KernelArgs {
  void* const* buffers;
  const u64* sizes;
  const u64* params;
  const u32* draw;
  u32* status;
  u64* counters;
};

template <class E>
struct LanesOf {
  using Type = lang::Vec<E, W>;
};
template <>
struct LanesOf<bool> {
  using Type = lang::Vec<i32, W>;
};
template <class E>
using Lanes = typename LanesOf<E>::Type;
using Truth = Lanes<bool>;

template <class T, T... I>
struct Indices {};
using LaneIndices = __make_integer_seq<Indices, int, W>;

// All lanes hold x.
template <class E>
CINCH_CALL Lanes<E> wide(E x) {
  if constexpr (lang::kSame<E, bool>) {
    return lang::splat<Truth>(-(i32)x);
  } else {
    return lang::splat<Lanes<E>>(x);
  }
}

// Lane l as a scalar.
template <class E>
CINCH_CALL E lane_of(Lanes<E> x, int l) {
  if constexpr (lang::kSame<E, bool>) {
    return x[l] != 0;
  } else {
    return x[l];
  }
}

template <class E>
CINCH_CALL void set_lane(Lanes<E>& x, int l, E value) {
  if constexpr (lang::kSame<E, bool>) {
    x[l] = -(i32)value;
  } else {
    x[l] = value;
  }
}

template <int... I>
CINCH_CALL Lanes<u32> count_lanes(Indices<int, I...>) {
  return Lanes<u32>{u32(I)...};
}
// 0, 1, … W - 1.
CINCH_CALL Lanes<u32> lane_numbers() {
  return count_lanes(LaneIndices{});
}

CINCH_CALL Truth all_lanes() {
  return Truth(-1);
}
// A truth value that is known at compile time.
template <bool B>
struct Known {
  static constexpr bool value = B;
};
// The larger or smaller of elements and one bound. In whole tiles the bound is not NaN. If it is a
// zero, comparing with the number next to it makes the zero lose or win by its sign.
template <class E>
CINCH_CALL E next_to_zero() {
  return lang::float_of_bits<E>(lang::UnsignedLike<E>(1));
}
template <bool Whole, class V, class E>
CINCH_CALL V bounded_max(Known<Whole>, V x, E bound) {
  if constexpr (Whole) {
    const bool is_low_zero = lang::bits_of(bound) == lang::bits_of(E(-0.0));
    return lang::select(x > wide<E>(is_low_zero ? -next_to_zero<E>() : bound), x, wide<E>(bound));
  } else {
    return lang::max(x, wide<E>(bound));
  }
}
template <bool Whole, class V, class E>
CINCH_CALL V bounded_min(Known<Whole>, V x, E bound) {
  if constexpr (Whole) {
    const bool is_high_zero = lang::bits_of(bound) == 0;
    return lang::select(x < wide<E>(is_high_zero ? next_to_zero<E>() : bound), x, wide<E>(bound));
  } else {
    return lang::min(x, wide<E>(bound));
  }
}
// The first `active` lanes.
CINCH_CALL Truth first_lanes(u32 active) {
  return lane_numbers() < wide(active);
}

// One bit for each lane, lane 0 lowest, and back.
using LaneBits = bool __attribute__((ext_vector_type(CINCH_LANES)));
#if CINCH_LANES == 16
using LaneWord = u16;
#else
using LaneWord = u8;
#endif
CINCH_CALL u32 bits_of_truth(Truth mask) {
  const LaneBits bits = __builtin_convertvector(mask, LaneBits);
  return u32(__builtin_bit_cast(LaneWord, bits)) & ((1u << W) - 1);
}
CINCH_CALL Truth truth_of_bits(u32 bits) {
  const LaneBits lanes = __builtin_bit_cast(LaneBits, LaneWord(bits));
  return -__builtin_convertvector(lanes, Truth);
}
CINCH_CALL bool any_lane(Truth mask) {
  return bits_of_truth(mask) != 0;
}
// Nonzero bits in lanes that are not finite, 0 in others: infinity minus itself is NaN.
CINCH_CALL Truth nonfinite_bits(Lanes<f32> x) {
  return Truth(lang::bits_of(x - x));
}

// Lane l takes lane l + Distance. The last lanes repeat and are never read.
template <int Distance, class V, int... I>
CINCH_CALL V shift_lanes_down(V x, Indices<int, I...>) {
  return __builtin_shufflevector(x, x, (I + Distance < W ? I + Distance : I)...);
}
template <int Distance, class V>
CINCH_CALL V lanes_down(V x) {
  return shift_lanes_down<Distance>(x, LaneIndices{});
}
// Lane l takes lane l - Distance. The first lanes are 0.
template <int Distance, class V, int... I>
CINCH_CALL V shift_lanes_up(V x, Indices<int, I...>) {
  return __builtin_shufflevector(x, V(0), (I >= Distance ? I - Distance : W)...);
}
template <int Distance, class V>
CINCH_CALL V lanes_up(V x) {
  return shift_lanes_up<Distance>(x, LaneIndices{});
}

// Is x, as a number of 64 bits, below a bound for all lanes?
CINCH_CALL Truth is_below(Lanes<u32> x, i64 bound) {
  const u32 last = bound > i64(0xffffffff) ? 0xffffffffu : u32(bound) - 1;
  return Truth(x <= wide(last)) & wide(bound > 0);
}
// x * y >> 32 for a y that all lanes share, without the bits above 32. Every other lane is
// multiplied where it lies.
CINCH_CALL Lanes<u32> high_product(Lanes<u32> x, u64 y) {
  using Pairs = lang::Vec<u64, W / 2>;
  const Pairs pairs = __builtin_bit_cast(Pairs, x);
  const Pairs low = lang::splat<Pairs>(u64(u32(y)));
  const Pairs even = (pairs & u64(0xffffffff)) * low >> 32;
  const Pairs odd = (pairs >> 32) * low & ~u64(0xffffffff);
  return __builtin_bit_cast(Lanes<u32>, even | odd) + x * wide(u32(y >> 32));
}

// Division by a number that all lanes share, by multiplying (Granlund and Montgomery 1994, their
// figure 4.1). By zero, quotient and rest are 0.
struct Divider {
  u32 factor, first_shift, second_shift, divisor;

  CINCH_MEMBER static Divider of(u32 d) {
    if (d == 0) return {0, 1, 31, 0};
    const u32 bits = d == 1 ? 0 : 32 - u32(__builtin_clz(d - 1));
    const u64 factor = (((1ull << bits) - d) << 32) / d + 1;
    return {u32(factor), bits < 1 ? bits : 1, bits < 1 ? 0 : bits - 1, d};
  }
  CINCH_MEMBER Lanes<u32> quotient(Lanes<u32> x) const {
    const Lanes<u32> high = high_product(x, u64(factor));
    return (high + ((x - high) >> wide(first_shift))) >> wide(second_shift);
  }
  CINCH_MEMBER Lanes<u32> rest(Lanes<u32> x) const {
    return (x - quotient(x) * wide(divisor)) & wide(divisor == 0 ? 0u : ~0u);
  }
};

// A function of at most eight steps: values.at[k] above ends.at[k], for the last such k. The ends
// ascend; ends.at[0] does not count. NaN is above none.
struct EightFloats {
  f32 at[8];
};
#if CINCH_LANES == 8 && defined(__AVX2__)
#define CINCH_PICKS_OF_EIGHT 1
// Element index % 8.
CINCH_CALL Lanes<f32> pick_of_eight(EightFloats x, Lanes<u32> index) {
  using V8 = f32 __attribute__((vector_size(32)));
  using I8 = i32 __attribute__((vector_size(32)));
  return __builtin_bit_cast(Lanes<f32>, __builtin_ia32_permvarsf256(__builtin_bit_cast(V8, x),
                                                                    __builtin_bit_cast(I8, index)));
}
#elif CINCH_LANES == 16 && defined(__AVX512F__)
#define CINCH_PICKS_OF_EIGHT 1
CINCH_CALL Lanes<f32> pick_of_eight(EightFloats x, Lanes<u32> index) {
  using V16 = f32 __attribute__((vector_size(64)));
  using I16 = i32 __attribute__((vector_size(64)));
  const struct {
    EightFloats low, high;
  } twice = {x, x};
  return __builtin_bit_cast(
      Lanes<f32>,
      __builtin_ia32_permvarsf512(__builtin_bit_cast(V16, twice), __builtin_bit_cast(I16, index)));
}
#else
#define CINCH_PICKS_OF_EIGHT 0
#endif
CINCH_CALL Lanes<f32> step_value(Lanes<f32> x, EightFloats ends, EightFloats values) {
#if CINCH_PICKS_OF_EIGHT
  const auto above = [&](int k)
                         __attribute__((always_inline)) { return op_gt(x, wide(ends.at[k])); };
  const Truth minus =
      ((above(1) + above(2)) + (above(3) + above(4))) + ((above(5) + above(6)) + above(7));
  return pick_of_eight(values, __builtin_bit_cast(Lanes<u32>, Truth(0) - minus));
#else
  Lanes<f32> value = wide(values.at[0]);
  for (int k = 1; k < 8; ++k) {
    value = op_select(op_gt(x, wide(ends.at[k])), wide(values.at[k]), value);
  }
  return value;
#endif
}

// One of sixteen floats for each lane, by an index below 16.
struct SixteenFloats {
  f32 at[16];
};
CINCH_CALL Lanes<f32> pick_of_sixteen(SixteenFloats x, Lanes<u32> index) {
#if CINCH_LANES == 16 && defined(__AVX512F__)
  using V16 = f32 __attribute__((vector_size(64)));
  using I16 = i32 __attribute__((vector_size(64)));
  return __builtin_bit_cast(
      Lanes<f32>,
      __builtin_ia32_permvarsf512(__builtin_bit_cast(V16, x), __builtin_bit_cast(I16, index)));
#elif CINCH_PICKS_OF_EIGHT
  EightFloats low, high;
  for (int k = 0; k < 8; ++k) {
    low.at[k] = x.at[k];
    high.at[k] = x.at[k + 8];
  }
  return op_select(Truth(index > wide(7u)), pick_of_eight(high, index), pick_of_eight(low, index));
#else
  Lanes<f32> picked;
  for (int l = 0; l < W; ++l) picked[l] = x.at[index[l]];
  return picked;
#endif
}

CINCH_CALL u32 least(u32 a, u32 b) {
  return a < b ? a : b;
}
CINCH_CALL u64 least(u64 a, u64 b) {
  return a < b ? a : b;
}
CINCH_CALL i64 least(i64 a, i64 b) {
  return a < b ? a : b;
}
// How many of `count` places from `first` on are below `limit`.
CINCH_CALL u32 places_below(i64 limit, i64 first, u32 count) {
  const i64 left = limit - first;
  return left <= 0 ? 0u : left < i64(count) ? u32(left) : count;
}

CINCH_CALL f32 f32_of_word(u64 word) {
  return lang::f32_of_bits(u32(word));
}
CINCH_CALL f64 f64_of_word(u64 word) {
  return lang::f64_of_bits(word);
}

}  // namespace cinch
