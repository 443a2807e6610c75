// convert.h: `as`. Floats to integers truncate and saturate, NaN gives 0; integers saturate; to
// narrow floats rounds once to nearest, ties to even. Needs arithmetic.h.
//
// Narrow floats live as their bits in u16 or u8 lanes when stored, and as f32 when computed with.

namespace cinch {
namespace lang {

// A float to an integer of `bits` bits in a container of element E (i32, u32, i64, u64). Clamped
// before it is converted: what is out of range has no meaning to the hardware's conversions.
template <class E, class F>
CINCH_LANG_FN Like<F, E> float_to_int(F x, int bits = int(8 * sizeof(E))) {
  using I = Like<F, E>;
  using X = Element<F>;
  constexpr bool kSigned = kIsSigned<E>;
  const int magnitude_bits = bits - (kSigned ? 1 : 0);
  // 2^magnitude_bits is exact in f32; everything from there on saturates.
  const X limit = X(2) * X(1ull << (magnitude_bits - 1));
  // Comparing with 0, NaN loses; below -1 it would not end as 0.
  const F number = kSigned ? select(x == x, x, splat<F>(0)) : x;
  const F above = float_max_with(number, splat<F>(kSigned ? -limit : X(0)));
  constexpr int kExactBits = sizeof(X) == 4 ? 24 : 31;
  if constexpr (sizeof(E) == 4) {
    // The highest value is exact as a float, and signed lanes hold it.
    if (magnitude_bits <= kExactBits) {
      const F inside = float_min_with(above, splat<F>(limit - 1));
      return from_unsigned<I>(bits_of(convert<i32>(inside)));
    }
  }
  const E highest = E(((1ull << (magnitude_bits - 1)) - 1) * 2 + 1);
  const Mask<F> too_high = above >= splat<F>(limit);
  const I inside = convert<E>(select(too_high, splat<F>(0), above));
  return select(mask_like<I>(too_high), splat<I>(highest), inside);
}

// An integer to one of `bits` bits in a container of element E: saturates.
template <class E, class I>
CINCH_LANG_FN Like<I, E> int_to_int(I x, int bits = int(8 * sizeof(E))) {
  constexpr bool kToSigned = kIsSigned<E>;
  const u64 highest = ((1ull << (bits - (kToSigned ? 2 : 1))) - 1) * 2 + 1;
  const u64 source_highest = kIsSigned<I> ? (~0ull >> (65 - kBits<I>)) : (~0ull >> (64 - kBits<I>));
  I clipped = x;
  if (highest < source_highest) clipped = min(clipped, splat<I>(Element<I>(highest)));
  if constexpr (kIsSigned<I>) {
    const i64 lowest = kToSigned ? -i64(highest) - 1 : 0;
    const i64 source_lowest = -i64(source_highest) - 1;
    if (lowest > source_lowest) clipped = max(clipped, splat<I>(Element<I>(lowest)));
  }
  return convert<E>(clipped);
}

// Any arithmetic value to f32 or f64: rounds to nearest even; what is too large is infinite.
template <class V>
CINCH_LANG_FN Like<V, float> to_f32(V x) {
  return convert<float>(x);
}
template <class V>
CINCH_LANG_FN Like<V, double> to_f64(V x) {
  return convert<double>(x);
}

// The f32 next to x toward zero, made odd where x lies between: rounding it once more to fewer
// digits rounds x itself once. Narrow floats of f64 and of integers go through here.
template <class V>
CINCH_LANG_FN Like<V, float> to_f32_odd(V x) {
  using F = Like<V, float>;
  if constexpr (kIsF32<V>) {
    return x;
  } else if constexpr (kIsF64<V>) {
    using U = Like<V, u32>;
    const F near = convert<float>(x);
    const V back = convert<double>(near);
    const U bits = bits_of(near);
    // Rounding went away from zero: step back. Infinity steps back to the largest, which is odd.
    const U down = select(mask_like<U>(float_abs(back) > float_abs(x)), splat<U>(1), splat<U>(0));
    const U odd = (bits - down) | splat<U>(1);
    const Mask<V> is_exact = (back == x) | (x != x);
    return f32_of_bits(select(mask_like<U>(is_exact), bits, odd));
  } else if constexpr (kBits<V> == 64) {
    // The low 11 bits fold into one sticky bit, so that f64 holds the rest exactly.
    using U = UnsignedLike<V>;
    const V magnitude_v = abs(x);
    const U magnitude = bits_of(magnitude_v);
    const U rest = magnitude & splat<U>(2047);
    const U sticky = select(rest == splat<U>(0), splat<U>(0), splat<U>(2048));
    const U folded = (magnitude & ~splat<U>(2047)) | sticky;
    const Mask<U> is_small = magnitude < splat<U>(1ull << 53);
    const Like<V, double> wide = convert<double>(select(is_small, magnitude, folded));
    const F result = to_f32_odd(wide);
    if constexpr (kIsSigned<V>) {
      return select(mask_like<F>(x < splat<V>(0)), neg(result), result);
    } else {
      return result;
    }
  } else {
    return to_f32_odd(convert<double>(x));
  }
}

// f32 bits to a float format of `Digits` significand digits (hidden one counted) and exponents from
// 2^MinExponent (the smallest normal), as sign, then magnitude bits in the low end. Magnitudes
// beyond the largest finite one come out above it: the caller decides.
template <int Digits, int MinExponent, class U>
CINCH_LANG_FN U narrow_magnitude(U magnitude) {
  constexpr int kDrop = 24 - Digits;
  // Normal results: rebias the exponent, round away the low bits; a carry runs into the exponent.
  const U rebased = magnitude - splat<U>(u32(127 + MinExponent - 1) << 23);
  const U odd = (rebased >> splat<U>(kDrop)) & splat<U>(1);
  const U normal = (rebased + splat<U>((1u << (kDrop - 1)) - 1) + odd) >> splat<U>(kDrop);
  // Subnormal results: adding 2^(MinExponent + 23 - (Digits - 1)) lets the adder round.
  using F = Like<U, float>;
  const U anchor = splat<U>(u32(127 + MinExponent + 24 - Digits) << 23);
  const U subnormal = bits_of(F(f32_of_bits(magnitude) + f32_of_bits(anchor))) - anchor;
  return select(magnitude < splat<U>(u32(127 + MinExponent) << 23), subnormal, normal);
}

// The same for formats of a byte, whose bits are the low ones of the result; those above mean
// nothing. A number added that is 2^(24 - Digits) times the element's power of two, and no less
// than that of the smallest normal, lets the adder round to the digits that stay: normal results
// and subnormal ones alike. Its own low bits take the exponent's offset.
template <int Digits, int MinExponent, class U>
CINCH_LANG_FN U narrow_byte(U magnitude) {
  using F = Like<U, float>;
  constexpr u32 kDrop = 24 - Digits, kLeast = 127 + MinExponent;
  constexpr u32 kOffset = (0u - (kLeast << (Digits - 1))) & 0xff;
  const U power = max(magnitude & splat<U>(0x7f800000u), splat<U>(kLeast << 23));
  const U anchor = power + splat<U>((kDrop << 23) | kOffset);
  const U rounded = bits_of(F(f32_of_bits(magnitude) + f32_of_bits(anchor)));
  return rounded + (power >> splat<U>(kDrop));
}

template <class F>
CINCH_LANG_FN Like<F, u16> f32_to_f16(F x) {
#if CINCH_LANG_CUDA && !defined(CINCH_LANG_PORTABLE_ONLY)
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return x != x ? u16(0x7e00) : bits;
#else
  using U = Like<F, u32>;
#if CINCH_LANG_VECTORS && defined(__F16C__) && !defined(CINCH_LANG_PORTABLE_ONLY)
  using H = Like<F, u16>;
  const H bits = __builtin_bit_cast(H, convert<_Float16>(x));
  return convert<u16>(select(mask_like<U>(x != x), splat<U>(0x7e00u), convert<u32>(bits)));
#else
  const U all = bits_of(x);
  const U magnitude = all & splat<U>(0x7fffffffu);
  const U narrow = select(magnitude < splat<U>(0x477ff000u), narrow_magnitude<11, -14>(magnitude),
                          splat<U>(0x7c00u));
  const U sign = (all >> splat<U>(16)) & splat<U>(0x8000u);
  return convert<u16>(select(magnitude > splat<U>(0x7f800000u), splat<U>(0x7e00u), narrow | sign));
#endif
#endif
}
template <class F>
CINCH_LANG_FN Like<F, u16> f32_to_bf16(F x) {
  using U = Like<F, u32>;
  const U all = bits_of(x);
  const U odd = (all >> splat<U>(16)) & splat<U>(1);
  const U rounded = (all + splat<U>(0x7fffu) + odd) >> splat<U>(16);
  return convert<u16>(select(mask_like<U>(x != x), splat<U>(0x7fc0u), rounded));
}
// Instructions of f8e4m3, for pairs: PTX has them from sm_89 on.
#if CINCH_LANG_CUDA && !defined(CINCH_LANG_PORTABLE_ONLY) && __CUDA_ARCH__ >= 890
#define CINCH_LANG_HAS_F8 1
#else
#define CINCH_LANG_HAS_F8 0
#endif
// Saturates: the format has no infinity, so what is beyond 448, infinities too, becomes 448.
template <class F>
CINCH_LANG_FN Like<F, u8> f32_to_f8e4m3(F x) {
#if CINCH_LANG_HAS_F8
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return x != x ? u8(0x7f) : u8(pair);
#else
  using U = Like<F, u32>;
  const U all = bits_of(x);
  const U magnitude = all & splat<U>(0x7fffffffu);
  const U narrow = narrow_byte<4, -6>(min(magnitude, splat<U>(0x43e00000u)));
  const U sign = (all >> splat<U>(24)) & splat<U>(0x80u);
  return convert<u8>(select(mask_like<U>(x != x), splat<U>(0x7fu), narrow | sign));
#endif
}
template <class F>
CINCH_LANG_FN Like<F, u8> f32_to_f8e5m2(F x) {
  using U = Like<F, u32>;
  const U all = bits_of(x);
  const U magnitude = all & splat<U>(0x7fffffffu);
  const U narrow = narrow_byte<3, -14>(min(magnitude, splat<U>(0x47700000u)));
  const U sign = (all >> splat<U>(24)) & splat<U>(0x80u);
  return convert<u8>(select(mask_like<U>(x != x), splat<U>(0x7eu), narrow | sign));
}

// The doors: from f32, f64 and integers, rounded once.
template <class V>
CINCH_LANG_FN Like<V, u16> to_f16(V x) {
  return f32_to_f16(to_f32_odd(x));
}
template <class V>
CINCH_LANG_FN Like<V, u16> to_bf16(V x) {
  return f32_to_bf16(to_f32_odd(x));
}
template <class V>
CINCH_LANG_FN Like<V, u8> to_f8e4m3(V x) {
  return f32_to_f8e4m3(to_f32_odd(x));
}
template <class V>
CINCH_LANG_FN Like<V, u8> to_f8e5m2(V x) {
  return f32_to_f8e5m2(to_f32_odd(x));
}

// Bits of a narrow float to f32, exactly. `magnitude` has MantissaBits below its exponent.
template <int MantissaBits, int MinExponent, class U>
CINCH_LANG_FN Like<U, float> widen_magnitude(U magnitude) {
  using F = Like<U, float>;
  const U placed = magnitude << splat<U>(23 - MantissaBits);
  const F normal = f32_of_bits(placed + splat<U>(u32(127 + MinExponent - 1) << 23));
  // Subnormals stand as the mantissa of 2^MinExponent, which is then taken away: exact, and no
  // operand is a subnormal f32, which some processors treat slowly.
  const U anchor = splat<U>(u32(127 + MinExponent) << 23);
  const F subnormal = f32_of_bits(placed | anchor) - f32_of_bits(anchor);
  return select(mask_like<F>(magnitude < splat<U>(1u << MantissaBits)), subnormal, normal);
}
template <class H>
CINCH_LANG_FN Like<H, float> from_f16(H bits) {
#if CINCH_LANG_CUDA && !defined(CINCH_LANG_PORTABLE_ONLY)
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return canonical(x);
#elif CINCH_LANG_VECTORS && defined(__F16C__) && !defined(CINCH_LANG_PORTABLE_ONLY)
  return canonical(convert<float>(__builtin_bit_cast(Like<H, _Float16>, bits)));
#else
  using U = Like<H, u32>;
  const U all = convert<u32>(bits);
  const U magnitude = all & splat<U>(0x7fffu);
  const U finite = bits_of(widen_magnitude<10, -14>(magnitude));
  const U special =
      select(magnitude == splat<U>(0x7c00u), splat<U>(0x7f800000u), splat<U>(0x7fc00000u));
  const U wide = select(magnitude < splat<U>(0x7c00u), finite, special);
  const U sign = (all & splat<U>(0x8000u)) << splat<U>(16);
  return f32_of_bits(select(magnitude > splat<U>(0x7c00u), wide, wide | sign));
#endif
}
template <class H>
CINCH_LANG_FN Like<H, float> from_bf16(H bits) {
  using U = Like<H, u32>;
  return canonical(f32_of_bits(U(convert<u32>(bits) << splat<U>(16))));
}
template <class B>
CINCH_LANG_FN Like<B, float> from_f8e4m3(B bits) {
#if CINCH_LANG_HAS_F8
  u32 halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(u16(bits)));
  return from_f16(u16(halves));
#else
  using U = Like<B, u32>;
  const U all = convert<u32>(bits);
  const U magnitude = all & splat<U>(0x7fu);
  const U finite =
      bits_of(widen_magnitude<3, -6>(magnitude)) | ((all & splat<U>(0x80u)) << splat<U>(24));
  return f32_of_bits(select(magnitude == splat<U>(0x7fu), splat<U>(0x7fc00000u), finite));
#endif
}
// e5m2 is the high byte of f16.
template <class B>
CINCH_LANG_FN Like<B, float> from_f8e5m2(B bits) {
  using U = Like<B, u32>;
  return from_f16(convert<u16>(U(convert<u32>(bits) << splat<U>(8))));
}

}  // namespace lang
}  // namespace cinch
