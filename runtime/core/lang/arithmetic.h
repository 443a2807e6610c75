// arithmetic.h: the element-wise operations of the language by their names in scalar_op.def, for
// f32, f64, i32, u32, i64, u64 and lanes of them. Integers wrap and never trap. Needs rounding.h.
//
// An integer of another width (u40, i33) lives in the next wider container; after an operation that
// may leave the width, wrap_int brings it back. Operations that depend on the width take it.

namespace cinch {
namespace lang {

// The low `bits` bits, sign-extended in signed containers.
template <class I>
CINCH_LANG_FN I wrap_int(I x, int bits) {
  const int unused = kBits<I> - bits;
  if (unused == 0) return x;
  using U = UnsignedLike<I>;
  const U count = splat<U>(Element<U>(unused));
  const U high = bits_of(x) << count;
  if constexpr (kIsSigned<I>) {
    return as_signed(high) >> splat<I>(Element<I>(unused));
  } else {
    return high >> count;
  }
}

template <class I>
CINCH_LANG_FN I from_unsigned(UnsignedLike<I> x) {
  if constexpr (kIsSigned<I>) {
    return as_signed(x);
  } else {
    return x;
  }
}

template <class V>
CINCH_LANG_FN V add(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return a + b;
  } else {
    return from_unsigned<V>(bits_of(a) + bits_of(b));
  }
}
template <class V>
CINCH_LANG_FN V sub(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return a - b;
  } else {
    return from_unsigned<V>(bits_of(a) - bits_of(b));
  }
}
template <class V>
CINCH_LANG_FN V mul(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return a * b;
  } else {
    return from_unsigned<V>(bits_of(a) * bits_of(b));
  }
}
template <class V>
CINCH_LANG_FN V neg(V x) {
  if constexpr (kIsFloat<V>) {
    return float_of_bits<V>(bits_of(x) ^ sign_bit<V>());
  } else {
    return from_unsigned<V>(splat<UnsignedLike<V>>(0) - bits_of(x));
  }
}
template <class V>
CINCH_LANG_FN V abs(V x) {
  if constexpr (kIsFloat<V>) {
    return float_abs(x);
  } else if constexpr (kIsSigned<V>) {
    return select(x < splat<V>(0), neg(x), x);
  } else {
    return x;
  }
}
template <class V>
CINCH_LANG_FN V sign(V x) {
  if constexpr (kIsFloat<V>) {
    return float_sign(x);
  } else {
    const V zero = splat<V>(0);
    const V positive = select(x == zero, zero, splat<V>(1));
    if constexpr (kIsSigned<V>) {
      return select(x < zero, splat<V>(-1), positive);
    } else {
      return positive;
    }
  }
}

// Integers truncate toward zero; by zero 0; the smallest by -1 wraps to itself.
template <class V>
CINCH_LANG_FN V div(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return a / b;
  } else {
    const Mask<V> by_zero = b == splat<V>(0);
    if constexpr (kIsSigned<V>) {
      const Mask<V> by_minus_one = b == splat<V>(-1);
      const V safe = select(by_zero | by_minus_one, splat<V>(1), b);
      return select(by_zero, splat<V>(0), select(by_minus_one, neg(a), a / safe));
    } else {
      return select(by_zero, splat<V>(0), a / select(by_zero, splat<V>(1), b));
    }
  }
}
// What `div` leaves: the sign of a; by zero 0. Floats: a - trunc(a / b) * b, each step rounded.
template <class V>
CINCH_LANG_FN V mod(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return a - trunc(a / b) * b;
  } else {
    return select(b == splat<V>(0), splat<V>(0), sub(a, mul(div(a, b), b)));
  }
}
// The integer quotient rounded up; by zero 0.
template <class V>
CINCH_LANG_FN V ceil_div(V a, V b) {
  const V quotient = div(a, b);
  const V rest = mod(a, b);
  const V zero = splat<V>(0);
  const V up = add(quotient, splat<V>(1));
  if constexpr (kIsSigned<V>) {
    return select((rest != zero) & ((rest > zero) == (b > zero)), up, quotient);
  } else {
    return select(rest != zero, up, quotient);
  }
}
// a / b, and 0 where b is 0.
template <class V>
CINCH_LANG_FN V divide_or_zero(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return select(b == splat<V>(0), splat<V>(0), a / b);
  } else {
    return div(a, b);
  }
}

template <class V>
CINCH_LANG_FN V min(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return float_min(a, b);
  } else {
    return select(a < b, a, b);
  }
}
template <class V>
CINCH_LANG_FN V max(V a, V b) {
  if constexpr (kIsFloat<V>) {
    return float_max(a, b);
  } else {
    return select(a > b, a, b);
  }
}
template <class V>
CINCH_LANG_FN V clamp(V x, V lo, V hi) {
  return min(max(x, lo), hi);
}

// A shift count modulo the width, never negative.
template <class I>
CINCH_LANG_FN UnsignedLike<I> shift_count(I count, int width) {
  using U = UnsignedLike<I>;
  if ((width & (width - 1)) == 0) return bits_of(count) & splat<U>(Element<U>(width - 1));
  const U modulus = splat<U>(Element<U>(width));
  if constexpr (kIsSigned<I>) {
    const I rest = mod(count, splat<I>(Element<I>(width)));
    return select(rest < splat<I>(0), bits_of(rest) + modulus, bits_of(rest));
  } else {
    return count % modulus;
  }
}
// x << (count mod width) and x >> (count mod width); signed values shift in their sign. x must be
// wrapped to the width; the result is.
template <class I>
CINCH_LANG_FN I shl(I x, I count, int width = kBits<I>) {
  return wrap_int(from_unsigned<I>(bits_of(x) << shift_count(count, width)), width);
}
template <class I>
CINCH_LANG_FN I shr(I x, I count, int width = kBits<I>) {
  return x >> from_unsigned<I>(shift_count(count, width));
}

template <class V>
CINCH_LANG_FN V bit_and(V a, V b) {
  return a & b;
}
template <class V>
CINCH_LANG_FN V bit_or(V a, V b) {
  return a | b;
}
template <class V>
CINCH_LANG_FN V bit_xor(V a, V b) {
  return a ^ b;
}
// Bitwise for integers, wrapped to the width.
template <class I>
CINCH_LANG_FN I bit_not(I x, int width = kBits<I>) {
  return wrap_int(I(~x), width);
}

// One bits among the low `width` bits.
template <class I>
CINCH_LANG_FN Like<I, u32> popcount(I x, int width = kBits<I>) {
  using U = UnsignedLike<I>;
  using E = Element<U>;
  const E ones = E(~E(0));
  const int unused = kBits<I> - width;
  U v = (bits_of(x) << splat<U>(E(unused))) >> splat<U>(E(unused));
  v = v - ((v >> splat<U>(1)) & splat<U>(ones / 3));
  v = (v & splat<U>(ones / 5)) + ((v >> splat<U>(2)) & splat<U>(ones / 5));
  v = (v + (v >> splat<U>(4))) & splat<U>(ones / 17);
  v = (v * splat<U>(ones / 255)) >> splat<U>(E(kBits<I> - 8));
  return convert<u32>(v);
}
// Zero bits above the highest one bit of the low `width` bits; of zero the width.
template <class I>
CINCH_LANG_FN Like<I, u32> clz(I x, int width = kBits<I>) {
  using U = UnsignedLike<I>;
  using E = Element<U>;
  U v = bits_of(x) << splat<U>(E(kBits<I> - width));
  v = v >> splat<U>(E(kBits<I> - width));
  for (int distance = 1; distance < kBits<I>; distance *= 2) v |= v >> splat<U>(E(distance));
  return splat<Like<I, u32>>(u32(width)) - popcount(v);
}

}  // namespace lang
}  // namespace cinch
