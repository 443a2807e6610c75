// rounding.h: what IEEE 754 fixes to the bit: magnitude, sign, rounding to integers, square root,
// min and max, fused multiply-add. Needs base.h. F: float or double, or lanes of them.

namespace cinch {
namespace lang {

template <class F>
CINCH_LANG_FN Mask<F> isnan(F x) {
  return x != x;
}
// Neither NaN nor infinite.
template <class F>
CINCH_LANG_FN Mask<F> isfinite(F x) {
  return (x - x) == splat<F>(0);
}

template <class F>
CINCH_LANG_FN F float_abs(F x) {
  return float_of_bits<F>(bits_of(x) & ~sign_bit<F>());
}
// The magnitude of x with the sign of `sign`.
template <class F>
CINCH_LANG_FN F copysign(F x, F sign) {
  const UnsignedLike<F> mask = sign_bit<F>();
  return float_of_bits<F>((bits_of(x) & ~mask) | (bits_of(sign) & mask));
}
// -1, 0 (+0, also for -0) or +1; NaN for NaN.
template <class F>
CINCH_LANG_FN F float_sign(F x) {
  const F zero = splat<F>(0);
  const F one = select(x < zero, splat<F>(-1), splat<F>(1));
  return select(x == zero, zero, select(x != x, x, one));
}

// The four roundings. Where the machine has an instruction it is used; elsewhere adding and taking
// away 2^23 (2^52) rounds to even what is smaller. Zeros keep the sign of x.
#if CINCH_LANG_CUDA
CINCH_LANG_FN float round(float x) {
  return rintf(x);
}
CINCH_LANG_FN double round(double x) {
  return rint(x);
}
CINCH_LANG_FN float floor(float x) {
  return floorf(x);
}
CINCH_LANG_FN double floor(double x) {
  return ::floor(x);
}
CINCH_LANG_FN float ceil(float x) {
  return ceilf(x);
}
CINCH_LANG_FN double ceil(double x) {
  return ::ceil(x);
}
CINCH_LANG_FN float trunc(float x) {
  return truncf(x);
}
CINCH_LANG_FN double trunc(double x) {
  return ::trunc(x);
}
#elif CINCH_LANG_VECTORS && (defined(__SSE4_1__) || defined(__aarch64__)) && \
    !defined(CINCH_LANG_PORTABLE_ONLY)
template <class F>
CINCH_LANG_FN F round(F x) {
  return __builtin_elementwise_roundeven(x);
}
template <class F>
CINCH_LANG_FN F floor(F x) {
  return __builtin_elementwise_floor(x);
}
template <class F>
CINCH_LANG_FN F ceil(F x) {
  return __builtin_elementwise_ceil(x);
}
template <class F>
CINCH_LANG_FN F trunc(F x) {
  return __builtin_elementwise_trunc(x);
}
#else
template <class F>
CINCH_LANG_FN F round(F x) {
  const F magic = splat<F>(kIsF32<F> ? 8388608.0 : 4503599627370496.0);
  const F magnitude = float_abs(x);
  const F rounded = copysign((magnitude + magic) - magic, x);
  return select(magnitude < magic, rounded, x);
}
template <class F>
CINCH_LANG_FN F floor(F x) {
  const F rounded = round(x);
  return copysign(select(rounded > x, rounded - splat<F>(1), rounded), x);
}
template <class F>
CINCH_LANG_FN F ceil(F x) {
  const F rounded = round(x);
  return copysign(select(rounded < x, rounded + splat<F>(1), rounded), x);
}
template <class F>
CINCH_LANG_FN F trunc(F x) {
  return copysign(floor(float_abs(x)), x);
}
#endif

// Correctly rounded; of a negative number NaN, of -0 -0.
#if CINCH_LANG_CUDA
CINCH_LANG_FN float sqrt(float x) {
  return __fsqrt_rn(x);
}
CINCH_LANG_FN double sqrt(double x) {
  return __dsqrt_rn(x);
}
#elif CINCH_LANG_VECTORS
template <class F>
CINCH_LANG_FN F sqrt(F x) {
  return __builtin_elementwise_sqrt(x);
}
#else
CINCH_LANG_FN float sqrt(float x) {
  return __builtin_sqrtf(x);
}
CINCH_LANG_FN double sqrt(double x) {
  return __builtin_sqrt(x);
}
#endif

// 1 / sqrt(x), both correctly rounded: two roundings.
template <class F>
CINCH_LANG_FN F rsqrt(F x) {
  return splat<F>(1) / sqrt(x);
}

// Both +0 or -0. Folds to false where one is a constant other than 0: bounds then cost one
// instruction.
template <class F>
CINCH_LANG_FN Mask<F> are_zeros(F a, F b) {
  return ((bits_of(a) | bits_of(b)) & ~sign_bit<F>()) == splat<UnsignedLike<F>>(0);
}
// The smaller and the larger. A NaN loses to any number; of two zeros -0 is the smaller. PTX
// defines its instructions of f32 just so (PTX ISA, min and max); they make one NaN of two.
template <class F>
CINCH_LANG_FN F float_min(F a, F b) {
#if CINCH_LANG_CUDA && !defined(CINCH_LANG_PORTABLE_ONLY)
  if constexpr (kIsF32<F>) {
    float least;
    asm("min.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
  }
#endif
  const F differing = select(a < b, a, b);
  const F zero = float_of_bits<F>(bits_of(a) | bits_of(b));
  return select(b != b, a, select(are_zeros(a, b), zero, differing));
}
template <class F>
CINCH_LANG_FN F float_max(F a, F b) {
#if CINCH_LANG_CUDA && !defined(CINCH_LANG_PORTABLE_ONLY)
  if constexpr (kIsF32<F>) {
    float most;
    asm("max.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
  }
#endif
  const F differing = select(a > b, a, b);
  const F zero = float_of_bits<F>(bits_of(a) & bits_of(b));
  return select(b != b, a, select(are_zeros(a, b), zero, differing));
}

// The same with a bound that is known not to be NaN, nor the zero that a comparison would take for
// the other one: not +0 for the smaller, not -0 for the larger. x86 has just this instruction,
// which the optimiser takes apart where the bound is a constant, unless it is named.
#if CINCH_LANG_VECTORS && defined(__AVX2__) && !defined(CINCH_LANG_PORTABLE_ONLY)
#define CINCH_LANG_NAMES_AVX2 1
using Avx2Floats = float __attribute__((vector_size(32)));
#else
#define CINCH_LANG_NAMES_AVX2 0
#endif
template <class F>
CINCH_LANG_FN F float_min_with(F x, F bound) {
#if CINCH_LANG_NAMES_AVX2
  if constexpr (kSame<F, Vec<float, 8>>) {
    return __builtin_bit_cast(F, __builtin_ia32_minps256(__builtin_bit_cast(Avx2Floats, x),
                                                         __builtin_bit_cast(Avx2Floats, bound)));
  }
#elif CINCH_LANG_CUDA && !defined(CINCH_LANG_PORTABLE_ONLY)
  if constexpr (kIsF32<F>) return float_min(x, bound);
#endif
  return select(x < bound, x, bound);
}
template <class F>
CINCH_LANG_FN F float_max_with(F x, F bound) {
#if CINCH_LANG_NAMES_AVX2
  if constexpr (kSame<F, Vec<float, 8>>) {
    return __builtin_bit_cast(F, __builtin_ia32_maxps256(__builtin_bit_cast(Avx2Floats, x),
                                                         __builtin_bit_cast(Avx2Floats, bound)));
  }
#elif CINCH_LANG_CUDA && !defined(CINCH_LANG_PORTABLE_ONLY)
  if constexpr (kIsF32<F>) return float_max(x, bound);
#endif
  return select(x > bound, x, bound);
}

// Fused multiply-add: a * b + c rounded once.
#if CINCH_LANG_CUDA
CINCH_LANG_FN float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
CINCH_LANG_FN double fma(double a, double b, double c) {
  return __fma_rn(a, b, c);
}
#elif CINCH_LANG_VECTORS && (defined(__FMA__) || defined(__aarch64__)) && \
    !defined(CINCH_LANG_PORTABLE_ONLY)
template <class F>
CINCH_LANG_FN F fma(F a, F b, F c) {
  return __builtin_elementwise_fma(a, b, c);
}
#else
// The product of two f32 is exact in f64; the sum is rounded to odd there, so that rounding it
// again to f32 rounds the exact value once (Boldo and Melquiond, 2008).
template <class F>
CINCH_LANG_FN F fma_f32(F a, F b, F c) {
  using D = Like<F, double>;
  using L = Like<F, u64>;
  const D product = convert<double>(a) * convert<double>(b);
  const D addend = convert<double>(c);
  const D sum = product + addend;
  const D part = sum - product;
  const D error = (product - (sum - part)) + (addend - part);
  const D zero = splat<D>(0);
  const L bits = bits_of(sum);
  const Mask<D> inexact = (error < zero) | (error > zero);
  const Mask<D> even = mask_like<D>((bits & splat<L>(1)) == splat<L>(0));
  // Truncated toward zero and made odd: one up where the error points away from zero, one down
  // where it points to it.
  const Mask<D> away = (error > zero) == (sum > zero);
  const D odd = select(away, f64_of_bits(bits + splat<L>(1)), f64_of_bits(bits - splat<L>(1)));
  return convert<float>(select(inexact & even, odd, sum));
}

// A finite nonzero double as mantissa * 2^exponent with 2^52 <= mantissa < 2^53.
struct FloatParts {
  u64 mantissa;
  int exponent;
  bool is_negative;
};
CINCH_LANG_SLOW_FN FloatParts split_float(double x) {
  const u64 bits = bits_of(x);
  const int biased = int(bits >> 52) & 0x7ff;
  u64 mantissa = bits & 0xfffffffffffffull;
  int exponent = biased == 0 ? -1074 : biased - 1075;
  if (biased != 0) mantissa |= 1ull << 52;
  while (mantissa < (1ull << 52)) {
    mantissa <<= 1;
    --exponent;
  }
  return {mantissa, exponent, (bits >> 63) != 0};
}

// magnitude * 2^exponent (magnitude != 0; its lowest bit may stand for lost ones) to the nearest
// double, ties to even.
CINCH_LANG_SLOW_FN double round_wide(unsigned __int128 magnitude, int exponent, bool is_negative) {
  int top = 127;
  while ((magnitude >> top) == 0) --top;
  int shift = top - 52;
  if (exponent + shift < -1074) shift = -1074 - exponent;
  u64 bits = 0;
  if (shift <= 0) {
    bits = u64(magnitude << -shift);
  } else if (shift <= 127) {
    bits = u64(magnitude >> shift);
    const unsigned __int128 rest = magnitude << (128 - shift);
    const unsigned __int128 half = (unsigned __int128)1 << 127;
    if (rest > half || (rest == half && (bits & 1) != 0)) ++bits;
  }
  // A carry out of the 53 bits runs into the exponent, as it must.
  const int biased = exponent + shift + 1075;
  if (bits >= (1ull << 52)) {
    if (biased + int(bits >> 53) > 2046) {
      bits = 0x7ff0000000000000ull;
    } else {
      bits += u64(biased - 1) << 52;
    }
  }
  return f64_of_bits(bits | (u64(is_negative) << 63));
}

// By integers: the 106-bit product and the addend stand in 128 bits, the smaller one shifted right
// with its lost bits kept as one sticky bit.
CINCH_LANG_SLOW_FN double fma_f64_lane(double a, double b, double c) {
  if (!isfinite(a) || !isfinite(b) || !isfinite(c) || a == 0 || b == 0 || c == 0) {
    return a * b + c;
  }
  const FloatParts x = split_float(a), y = split_float(b), z = split_float(c);
  unsigned __int128 big = ((unsigned __int128)x.mantissa * y.mantissa) << 20;
  int big_exponent = x.exponent + y.exponent - 20;
  if ((big >> 125) == 0) {
    big <<= 1;
    --big_exponent;
  }
  unsigned __int128 small = (unsigned __int128)z.mantissa << 73;
  int small_exponent = z.exponent - 73;
  bool big_negative = x.is_negative != y.is_negative, small_negative = z.is_negative;
  if (small_exponent > big_exponent || (small_exponent == big_exponent && small > big)) {
    const unsigned __int128 wide = big;
    const int exponent = big_exponent;
    const bool negative = big_negative;
    big = small, big_exponent = small_exponent, big_negative = small_negative;
    small = wide, small_exponent = exponent, small_negative = negative;
  }
  const int distance = big_exponent - small_exponent;
  if (distance > 126) {
    small = 1;
  } else if (distance > 0) {
    const bool lost = (small << (128 - distance)) != 0;
    small = (small >> distance) | (unsigned __int128)lost;
  }
  const unsigned __int128 sum = big_negative == small_negative ? big + small : big - small;
  return sum == 0 ? 0.0 : round_wide(sum, big_exponent, big_negative);
}

template <class F>
CINCH_LANG_FN F fma(F a, F b, F c) {
  if constexpr (kIsF32<F>) {
    return fma_f32(a, b, c);
  } else {
    F result = a;
    for (int i = 0; i < kLanes<F>; ++i) {
      set_lane(result, i, fma_f64_lane(lane(a, i), lane(b, i), lane(c, i)));
    }
    return result;
  }
}
#endif

}  // namespace lang
}  // namespace cinch
