// exp_log.h: exp, exp2, log, log1p, log2, tanh for f32 and f64. Needs rounding.h. Only +, -, *, /
// and bits are used, each correctly rounded, so all targets agree. Errors against the exact value,
// measured by tests/unit/runtime/core: below 1 ulp in both types.
//
// The polynomials are our own minimax fits (Remez, 60 digits), rounded coefficient by coefficient.

namespace cinch {
namespace lang {

// Lowest degree first, by Horner's rule: no contraction, one order.
template <class F>
CINCH_LANG_FN F polynomial(F, Element<F> last) {
  return splat<F>(last);
}
template <class F, class... Rest>
CINCH_LANG_FN F polynomial(F x, Element<F> first, Rest... rest) {
  return splat<F>(first) + x * polynomial(x, Element<F>(rest)...);
}

// A float that, added to a whole number k of moderate size, leaves k in the low bits of the sum.
template <class F>
inline constexpr Element<F> kIntegerMagic = kIsF32<F> ? 12582912.0 : 6755399441055744.0;

// 2^k for a whole-numbered float k in the range of normal exponents.
template <class F>
CINCH_LANG_FN F power_of_two(F k) {
  using U = UnsignedLike<F>;
  constexpr int kMantissa = kIsF32<F> ? 23 : 52;
  constexpr Element<F> kBias = kIsF32<F> ? 127 : 1023;
  const U biased = bits_of(F(k + splat<F>(kIntegerMagic<F> + kBias)));
  return float_of_bits<F>(U(biased << splat<U>(kMantissa)));
}

// x * 2^k for |k| up to twice the exponent range: two exact-or-once-rounded steps.
template <class F>
CINCH_LANG_FN F scale_by_power(F x, F k) {
  const F half = floor(k * splat<F>(0.5));
  return x * power_of_two(half) * power_of_two(k - half);
}

// e^(r + tail) - 1 for |r| <= 0.35 and a tail of at most the last digit of r.
template <class F>
CINCH_LANG_FN F exp_minus_one(F r, F tail) {
  F q;
  if constexpr (kIsF32<F>) {
    q = polynomial(r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e2p-7f,
                   0x1.6a2434p-10f);
  } else {
    q = polynomial(r, 0x1.000000000000ap-1, 0x1.55555555554fap-3, 0x1.555555555087cp-5,
                   0x1.1111111127be5p-7, 0x1.6c16c1842a126p-10, 0x1.a01a012a57b5ep-13,
                   0x1.a0199a0c66196p-16, 0x1.71df255235e0ap-19, 0x1.28ad72cd4aaf9p-22,
                   0x1.ad7f6f0e249f8p-26);
  }
  return r + (tail + (r * r) * q);
}

template <class F>
CINCH_LANG_FN F exp_near_zero(F r, F tail) {
  return splat<F>(1) + exp_minus_one(r, tail);
}

// A moderate x as k ln 2 + r + tail, |r| <= 0.35.
template <class F>
struct ExpParts {
  F k, r, tail;
};
template <class F>
CINCH_LANG_FN ExpParts<F> split_for_exp(F x) {
  using E = Element<F>;
  const F k = round(x * splat<F>(E(0x1.71547652b82fep+0)));
  // ln 2 in two parts; the first has so few digits that k times it is exact.
  const F high = splat<F>(E(kIsF32<F> ? 0x1.62e4p-1 : 0x1.62e42fee00000p-1));
  const F low = splat<F>(E(kIsF32<F> ? 0x1.7f7d1cp-20 : 0x1.a39ef35793c76p-33));
  const F near = x - k * high;
  const F shift = k * low;
  const F r = near - shift;
  return {k, r, (near - r) - shift};
}

// Above: infinity. Below: rounds to zero.
template <class F>
inline constexpr Element<F> kExpHighest = kIsF32<F> ? 89 : 710;
template <class F>
inline constexpr Element<F> kExpLowest = kIsF32<F> ? -104 : -746;
template <class F>
inline constexpr Element<F> kExp2Highest = kIsF32<F> ? 129 : 1025;
template <class F>
inline constexpr Element<F> kExp2Lowest = kIsF32<F> ? -151 : -1076;

template <class F>
CINCH_LANG_FN F exp(F x) {
  const F highest = splat<F>(kExpHighest<F>), lowest = splat<F>(kExpLowest<F>);
  const F inside = select(x < highest, select(x > lowest, x, lowest), highest);
  const ExpParts<F> parts = split_for_exp(inside);
  const F result = scale_by_power(exp_near_zero(parts.r, parts.tail), parts.k);
  return select(x != x, x, result);
}

// 2^(x + tail) for |x| below 1100 and |tail| below 2^-20: the last step of exp2 and pow.
template <class F>
CINCH_LANG_FN F exp2_of_sum(F x, F tail) {
  using E = Element<F>;
  const F k = round(x);
  // The tail joins what is left of x, as far as it reaches; what then remains is below its last
  // digit.
  const F exact = x - k;
  const F f = exact + tail;
  const F rest = (exact - f) + tail;
  const F ln2 = splat<F>(E(kIsF32<F> ? 0x1.62e430p-1 : 0x1.62e42fefa39efp-1));
  const F ln2_low = splat<F>(E(kIsF32<F> ? -0x1.05c610p-29 : 0x1.abc9e3b39803fp-56));
  return scale_by_power(exp_near_zero(f * ln2, rest * ln2 + f * ln2_low), k);
}

template <class F>
CINCH_LANG_FN F exp2(F x) {
  const F highest = splat<F>(kExp2Highest<F>), lowest = splat<F>(kExp2Lowest<F>);
  const F inside = select(x < highest, select(x > lowest, x, lowest), highest);
  return select(x != x, x, exp2_of_sum(inside, splat<F>(0)));
}

// A positive finite x as (1 + f) * 2^k with 1 + f from sqrt(1/2) to sqrt(2); f is exact.
template <class F>
struct LogParts {
  F f;
  F k;
};
template <class F>
CINCH_LANG_FN LogParts<F> split_for_log(F x) {
  using U = UnsignedLike<F>;
  using S = SignedLike<F>;
  using E = Element<U>;
  constexpr int kMantissa = kIsF32<F> ? 23 : 52;
  const F smallest_normal = float_of_bits<F>(splat<U>(E(1) << kMantissa));
  const Mask<F> is_subnormal = x < smallest_normal;
  const F lift = splat<F>(Element<F>(E(1) << (kMantissa + 1)));
  const U bits = bits_of(select(is_subnormal, x * lift, x));
  // Subtracting the bits of sqrt(1/2) makes the exponent field change where the mantissa passes it.
  const U root = splat<U>(kIsF32<F> ? E(0x3f3504f3u) : E(0x3fe6a09e667f3bcdull));
  const S exponent = as_signed(U(bits - root)) >> splat<S>(kMantissa);
  const U mantissa = bits - bits_of(S(exponent << splat<S>(kMantissa)));
  // The integer as a float, without an instruction that older machines lack for 64 bits.
  const U magic = bits_of(splat<F>(kIntegerMagic<F>));
  const F k = float_of_bits<F>(U(magic + bits_of(exponent))) - splat<F>(kIntegerMagic<F>);
  const F correction = select(is_subnormal, splat<F>(kMantissa + 1), splat<F>(0));
  return {float_of_bits<F>(mantissa) - splat<F>(1), k - correction};
}

// log(1 + f) as f - f²/2 + `tail`, the last being what this gives; f² / 2 goes out in half_square.
template <class F>
CINCH_LANG_FN F log_tail(F f, F& half_square) {
  half_square = splat<F>(Element<F>(0.5)) * f * f;
  if constexpr (kIsF32<F>) {
    const F p = polynomial(f, 0x1.555554p-2f, -0x1.ffffd4p-3f, 0x1.999a14p-3f, -0x1.5563ccp-3f,
                           0x1.248f2ap-3f, -0x1.fce348p-4f, 0x1.c406f8p-4f, -0x1.bb43a6p-4f,
                           0x1.b3a438p-4f, -0x1.e99cbap-5f);
    return f * f * f * p;
  } else {
    // With s = f / (2 + f): log(1 + f) = 2s + s R(s²), and 2s = f - s f, s f = s (f²/2) + f²/2.
    const F s = f / (splat<F>(2) + f);
    const F z = s * s;
    const F r = z * polynomial(z, 0x1.5555555555593p-1, 0x1.999999997fb31p-2, 0x1.2492494217a8bp-2,
                               0x1.c71c51e7f3125p-3, 0x1.7466462d33713p-3, 0x1.39a0f4f5f828fp-3,
                               0x1.2f0d8ef234f70p-3);
    return s * (half_square + r);
  }
}

// What log and log2 give for 0, negative numbers, infinity and NaN.
template <class F>
CINCH_LANG_FN F log_special(F x, F result) {
  const F zero = splat<F>(0);
  const F from_zero = select(x == zero, -infinity_of<F>(), result);
  const F from_infinity = select(x == infinity_of<F>(), x, from_zero);
  return select((x < zero) | (x != x), nan_of<F>(), from_infinity);
}

template <class F>
CINCH_LANG_FN F log(F x) {
  using E = Element<F>;
  const LogParts<F> parts = split_for_log(x);
  F half_square;
  const F tail = log_tail(parts.f, half_square);
  const F high = splat<F>(E(kIsF32<F> ? 0x1.62e4p-1 : 0x1.62e42fee00000p-1));
  const F low = splat<F>(E(kIsF32<F> ? 0x1.7f7d1cp-20 : 0x1.a39ef35793c76p-33));
  const F small = (tail + parts.k * low) - half_square;
  return log_special(x, parts.k * high + (parts.f + small));
}

// log(1 + x) as log(u) + c / u, where u is the rounded sum and c what it lost. Near 1, x itself is
// what exceeds 1.
template <class F>
CINCH_LANG_FN F log1p(F x) {
  using E = Element<F>;
  const F one = splat<F>(1), zero = splat<F>(0);
  const F u = one + x;
  const LogParts<F> parts = split_for_log(u);
  const Mask<F> is_near = parts.k == zero;
  const F lost = select(x < one, x - (u - one), one - (u - x));
  const F correction = select(is_near, zero, lost / u);
  const F f = select(is_near, x, parts.f);
  F half_square;
  const F tail = log_tail(f, half_square);
  const F high = splat<F>(E(kIsF32<F> ? 0x1.62e4p-1 : 0x1.62e42fee00000p-1));
  const F low = splat<F>(E(kIsF32<F> ? 0x1.7f7d1cp-20 : 0x1.a39ef35793c76p-33));
  const F small = (tail + (parts.k * low + correction)) - half_square;
  return select(x == zero, x, log_special(u, parts.k * high + (f + small)));
}

template <class F>
CINCH_LANG_FN F log2(F x) {
  using E = Element<F>;
  using U = UnsignedLike<F>;
  const LogParts<F> parts = split_for_log(x);
  F half_square;
  const F tail = log_tail(parts.f, half_square);
  // log(1 + f) in two parts, the first with so few digits that its product with the first part of
  // log2(e) is exact.
  const F rough = parts.f - half_square;
  const U keep = splat<U>(kIsF32<F> ? Element<U>(~0xfffu) : Element<U>(~0xffffffffull));
  const F head = float_of_bits<F>(bits_of(rough) & keep);
  const F rest = ((parts.f - head) - half_square) + tail;
  const F scale = splat<F>(E(kIsF32<F> ? 0x1.714p+0 : 0x1.71547652p+0));
  const F scale_low = splat<F>(E(kIsF32<F> ? 0x1.47652cp-12 : 0x1.705fc2eefa200p-33));
  const F small = (head + rest) * scale_low + rest * scale;
  const F big = head * scale;
  // k + big, with what the sum loses put back.
  const F sum = parts.k + big;
  const F lost = (parts.k - sum) + big;
  const F exact_sum = select(parts.k == splat<F>(0), big, sum);
  const F error = select(parts.k == splat<F>(0), splat<F>(0), lost);
  return log_special(x, exact_sum + (small + error));
}

// tanh(x) for |x| <= 0.6.
template <class F>
CINCH_LANG_FN F tanh_near_zero(F x) {
  const F z = x * x;
  F p;
  if constexpr (kIsF32<F>) {
    p = polynomial(z, -0x1.555554p-2f, 0x1.111084p-3f, -0x1.b9f4bep-5f, 0x1.63d27ep-6f,
                   -0x1.0d6682p-7f, 0x1.1e6d8cp-9f);
  } else {
    p = polynomial(z, -0x1.5555555555554p-2, 0x1.1111111110ee4p-3, -0x1.ba1ba1b9f6203p-5,
                   0x1.664f4878d2b22p-6, -0x1.226e33d72e8d2p-7, 0x1.d6d3846f93402p-9,
                   -0x1.7d9e688f7237dp-10, 0x1.351f29a51ed09p-11, -0x1.f1f8de8e44c67p-13,
                   0x1.836be0806ab58p-14, -0x1.0466dd2cb5f9dp-15, 0x1.aff5100ffa6c3p-18);
  }
  return x + x * (z * p);
}

// Beyond: 1, rounded.
template <class F>
inline constexpr Element<F> kTanhHighest = kIsF32<F> ? 10 : 20;

// 1 - 2 / (e^2x + 1) with the sign of x. The sum is 2^k + 1, which is exact where that matters, and
// 2^k (e^r - 1); what it and the difference lose is put back at the end.
template <class F>
CINCH_LANG_FN F tanh(F x) {
  using E = Element<F>;
  const F one = splat<F>(1), half = splat<F>(E(0.5)), near = splat<F>(E(0.6));
  const F size = abs(x), highest = splat<F>(kTanhHighest<F>);
  const F inside = select(size < highest, size, highest);
  const ExpParts<F> parts = split_for_exp(F(inside + inside));
  const F power = power_of_two(parts.k);
  const F rest = power * exp_minus_one(parts.r, parts.tail);
  const F begin = power + one;
  const F sum = begin + rest;
  const F lost = rest - (sum - begin);
  const F quotient = splat<F>(2) / sum;
  const F rough = one - quotient;
  const F far = rough + (((one - rough) - quotient) + quotient * quotient * (half * lost));
  const F result = select(size < near, tanh_near_zero(inside), select(size < highest, far, one));
  return select(x == splat<F>(0) | x != x, x, select(x < splat<F>(0), -result, result));
}

// ---- the same bits, sooner ----

// exp2 of a float that is whole, infinite or NaN.
template <class F>
CINCH_LANG_FN F exp2_of_whole(F k) {
  const F highest = splat<F>(kExp2Highest<F>), lowest = splat<F>(kExp2Lowest<F>);
  const F inside = select(k < highest, select(k > lowest, k, lowest), highest);
  return select(k != k, k, scale_by_power(splat<F>(1), inside));
}
// floor(log2(x)) of f32. It is the exponent, unless log2 rounds up to the next whole number; x then
// lies within 2^-12 of the next power of two.
template <class F>
CINCH_LANG_FN F floor_of_log2(F x) {
  using U = UnsignedLike<F>;
  const U bits = bits_of(x);
  const Mask<U> is_normal = bits - splat<U>(0x00800000u) < splat<U>(0x7f000000u);
  const Mask<U> is_far = (bits & splat<U>(0x007fffffu)) < splat<U>(0x007ff000u);
  const Mask<U> is_zero = (bits & splat<U>(0x7fffffffu)) == splat<U>(0u);
  const U biased = bits_of(splat<F>(kIntegerMagic<F>)) + (bits >> splat<U>(23));
  const F exponent = float_of_bits<F>(biased) - splat<F>(kIntegerMagic<F>) - splat<F>(127);
  const F usual = select(mask_like<F>(is_zero), -infinity_of<F>(), exponent);
  const F rare = select(mask_like<F>(is_zero | (is_normal & is_far)), splat<F>(0), splat<F>(1));
  const Mask<F> is_rare = rare != splat<F>(0);
  if (!any(is_rare)) return usual;
  return select(is_rare, floor(log2(x)), usual);
}

}  // namespace lang
}  // namespace cinch
