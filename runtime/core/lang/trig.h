// trig.h: sin and cos of radians for f32 and f64, for every finite argument; of infinities NaN.
// Needs pow.h (two-part arithmetic). Below 1 ulp. The argument is reduced in f64, also for f32.

namespace cinch {
namespace lang {

// 2/π in binary, 32 bits a word, after two words of zeros.
CINCH_LANG_TABLE u32 kTwoOverPi[43] = {
    0u,          0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
    0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu,
    0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u,
    0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu,
    0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u,
    0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du,
    0xa9e39161u};

// x = quadrant * π/2 + high + low (modulo 2π), |high| a little over π/4 at most.
template <class F>
struct Reduced {
  F high;
  F low;
  // Only the low two bits count.
  Like<F, u64> quadrant;
};

// The top 53 bits of a 64-bit fraction as a double below 1, exact.
CINCH_LANG_FN double fraction_of_bits(u64 bits) {
  return double(bits >> 11) * 0x1p-53;
}

// For finite |x| >= 2^20 (Payne and Hanek, 1983): x = m 2^e; of 2/π only 192 bits from weight
// 2^(1-e) on can matter modulo 4; m times these, modulo 2^192, is x·2/π modulo 4 with 190 fraction
// bits, of which 137 are right.
CINCH_LANG_SLOW_FN Reduced<double> reduce_large(double x) {
  const u64 bits = bits_of(x);
  const int exponent = int((bits >> 52) & 0x7ff) - 1075;
  const u64 mantissa = (bits & 0xfffffffffffffull) | (1ull << 52);
  const u32 factor[2] = {u32(mantissa), u32(mantissa >> 32)};
  // The first bit of the window, counted from the table's first.
  const int first = exponent - 2 + 64;
  u32 product[6] = {0, 0, 0, 0, 0, 0};
  u32 window[6];
  for (int i = 0; i < 6; ++i) {
    const int at = first + 32 * (5 - i);
    const u64 pair = (u64(kTwoOverPi[at / 32]) << 32) | kTwoOverPi[at / 32 + 1];
    window[i] = u32(pair >> (32 - at % 32));
  }
  for (int j = 0; j < 2; ++j) {
    u64 carry = 0;
    for (int i = 0; i + j < 6; ++i) {
      const u64 sum = u64(window[i]) * factor[j] + product[i + j] + carry;
      product[i + j] = u32(sum);
      carry = sum >> 32;
    }
  }
  u64 quadrant = product[5] >> 30;
  // The fraction in 128 bits, top first; above one half it counts down from the next quadrant.
  u64 top = ((((u64)product[5] << 32) | product[4]) << 2) | (product[3] >> 30);
  u64 next = ((((u64)product[3] << 32) | product[2]) << 2) | (product[1] >> 30);
  u64 last = ((((u64)product[1] << 32) | product[0]) << 2);
  const bool is_negative = (top >> 63) != 0;
  if (is_negative) {
    ++quadrant;
    top = ~top, next = ~next, last = ~last;
  }
  double scale = 1;
  while ((top >> 62) == 0 && scale > 0x1p-120) {
    top = (top << 1) | (next >> 63);
    next = (next << 1) | (last >> 63);
    last <<= 1;
    scale *= 0.5;
  }
  const double head = fraction_of_bits(top);
  const double tail = fraction_of_bits((top << 53) | (next >> 11)) * 0x1p-53;
  const TwoPart<double> half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  TwoPart<double> r = multiply(TwoPart<double>{head, tail}, half_pi);
  if (is_negative != ((bits >> 63) != 0)) scale = -scale;
  if ((bits >> 63) != 0) quadrant = 0 - quadrant;
  return {r.high * scale, r.low * scale, quadrant};
}

// F: double or lanes of it. π/2 in three parts of 33 digits and a last one: k times a part is exact
// while |k| < 2^20.
template <class F>
CINCH_LANG_FN Reduced<F> reduce_angle(F x) {
  const F magnitude = float_abs(x);
  const Mask<F> is_far = magnitude >= splat<F>(0x1p+20);
  const Mask<F> is_finite = magnitude < infinity_of<F>();
  const Mask<F> is_large = is_far & is_finite;
  const F inside = select(is_far, splat<F>(0), x);
  const F k = round(inside * splat<F>(0x1.45f306dc9c883p-1));
  const F first = inside - k * splat<F>(0x1.921fb544p+0);
  const TwoPart<F> second = two_sum(first, -(k * splat<F>(0x1.0b4611a6p-34)));
  const TwoPart<F> third = two_sum(second.high, -(k * splat<F>(0x1.3198a2ep-69)));
  const F rest = (third.low + second.low) - k * splat<F>(0x1.b839a252049c1p-104);
  const TwoPart<F> sum = fast_two_sum(third.high, rest);
  Reduced<F> result = {sum.high, sum.low, bits_of(F(k + splat<F>(kIntegerMagic<F>)))};
  if (any(is_large)) {
    for (int i = 0; i < kLanes<F>; ++i) {
      if (!lane(is_large, i)) continue;
      const Reduced<double> one = reduce_large(lane(x, i));
      set_lane(result.high, i, one.high);
      set_lane(result.low, i, one.low);
      set_lane(result.quadrant, i, one.quadrant);
    }
  }
  return result;
}

// sin and cos of r + tail for |r| up to a little over π/4.
template <class F>
CINCH_LANG_FN F sin_near_zero(F r, F tail) {
  const F z = r * r;
  F p;
  if constexpr (kIsF32<F>) {
    p = polynomial(z, -0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f98p-13f, 0x1.6cd734p-19f);
  } else {
    p = polynomial(z, -0x1.5555555555549p-3, 0x1.111111110f861p-7, -0x1.a01a019c0e4c4p-13,
                   0x1.71de3574ba809p-19, -0x1.ae5e63cda0f41p-26, 0x1.5d9246d4045c1p-33);
  }
  const F half = splat<F>(Element<F>(0.5));
  return r + ((z * r) * p + (tail - tail * (half * z)));
}
template <class F>
CINCH_LANG_FN F cos_near_zero(F r, F tail) {
  const F z = r * r;
  F p;
  if constexpr (kIsF32<F>) {
    p = polynomial(z, 0x1.55554ap-5f, -0x1.6c0c86p-10f, 0x1.9a00cep-16f);
  } else {
    p = polynomial(z, 0x1.555555555554cp-5, -0x1.6c16c16c15162p-10, 0x1.a01a019caef38p-16,
                   -0x1.27e4f807d6346p-22, 0x1.1ee9ea6cd13c7p-29, -0x1.8fadd079114edp-37);
  }
  const F half_z = splat<F>(Element<F>(0.5)) * z;
  const F main = splat<F>(1) - half_z;
  const F lost = (splat<F>(1) - main) - half_z;
  return main + (lost + ((z * z) * p - r * tail));
}

// sin (turn = 0) or cos (turn = 1) of the reduced angle: sin(r + (quadrant + turn) π/2).
template <class F, class Q>
CINCH_LANG_FN F sin_of_quadrant(F r, F tail, Q quadrant, int turn) {
  using E = Element<Q>;
  const Q q = quadrant + splat<Q>(E(turn));
  const Mask<F> is_cos = mask_like<F>((q & splat<Q>(1)) != splat<Q>(0));
  const Mask<F> is_negative = mask_like<F>((q & splat<Q>(2)) != splat<Q>(0));
  const F value = select(is_cos, cos_near_zero(r, tail), sin_near_zero(r, tail));
  return select(is_negative, -value, value);
}

template <class F>
CINCH_LANG_FN F sin_or_cos(F x, int turn) {
  using E = Element<F>;
  using D = Like<F, double>;
  const Reduced<D> angle = reduce_angle(convert<double>(x));
  const F r = convert<E>(angle.high);
  // What f32 cannot hold of the reduced angle goes on as the tail.
  const F tail = convert<E>(D((angle.high - convert<double>(r)) + angle.low));
  const F zero = splat<F>(0);
  const F result = sin_of_quadrant(r, tail, angle.quadrant, turn);
  return select(isfinite(x), select((x == zero) & Mask<F>(turn == 0 ? x == x : x != x), x, result),
                nan_of<F>());
}

template <class F>
CINCH_LANG_FN F sin(F x) {
  return sin_or_cos(x, 0);
}
template <class F>
CINCH_LANG_FN F cos(F x) {
  return sin_or_cos(x, 1);
}

// cos and sin of 2π times a fraction of a turn in [0, 1), f32: reduced exactly, without f64.
template <class F>
CINCH_LANG_FN void cos_sin_of_turn(F turn, F& cosine, F& sine) {
  using Q = Like<F, i32>;
  const F quarters = turn * splat<F>(4);
  const F nearest = round(quarters);
  const F r = (quarters - nearest) * splat<F>(0x1.921fb6p+0f);
  const Q quadrant = convert<i32>(nearest);
  cosine = sin_of_quadrant(r, splat<F>(0), quadrant, 1);
  sine = sin_of_quadrant(r, splat<F>(0), quadrant, 0);
}

}  // namespace lang
}  // namespace cinch
