// pow.h: x to the y for f32 and f64, special values as in IEEE 754 (pow(x, 0) and pow(1, y) are 1,
// also for NaN). Needs exp_log.h. f32 is computed in f64 and is almost always correctly rounded;
// f64 carries log2(x) in two numbers: below 1 ulp.

namespace cinch {
namespace lang {

// An unevaluated sum high + low with |low| <= ulp(high) / 2.
template <class F>
struct TwoPart {
  F high;
  F low;
};

template <class F>
CINCH_LANG_FN TwoPart<F> two_sum(F a, F b) {
  const F sum = a + b;
  const F part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}
// For |a| >= |b|, or a = 0.
template <class F>
CINCH_LANG_FN TwoPart<F> fast_two_sum(F a, F b) {
  const F sum = a + b;
  return {sum, b - (sum - a)};
}
// The upper 26 digits of an f64 and the rest.
template <class F>
CINCH_LANG_FN TwoPart<F> halves(F x) {
  using U = UnsignedLike<F>;
  const F high = float_of_bits<F>(bits_of(x) & splat<U>(~0x7ffffffull));
  return {high, x - high};
}
// a * b exactly (no overflow, no subnormals), without a fused multiply-add (Dekker, 1971).
template <class F>
CINCH_LANG_FN TwoPart<F> two_product(F a, F b) {
  const F product = a * b;
  const TwoPart<F> x = halves(a), y = halves(b);
  const F low = ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low;
  return {product, low};
}
template <class F>
CINCH_LANG_FN TwoPart<F> multiply(TwoPart<F> a, TwoPart<F> b) {
  const TwoPart<F> product = two_product(a.high, b.high);
  return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}
template <class F>
CINCH_LANG_FN TwoPart<F> add_parts(TwoPart<F> a, TwoPart<F> b) {
  const TwoPart<F> sum = two_sum(a.high, b.high);
  return fast_two_sum(sum.high, sum.low + (a.low + b.low));
}

// log2 of a positive finite f64 to about 66 digits: with s = f / (2 + f),
// log(1 + f) = 2s + 2/3 s³ + s⁵ Q(s²); the first two terms are carried in two parts.
template <class F>
CINCH_LANG_FN TwoPart<F> log2_two_part(F x) {
  const LogParts<F> parts = split_for_log(x);
  const F f = parts.f;
  const TwoPart<F> denominator = fast_two_sum(splat<F>(2), f);
  const F quotient = f / denominator.high;
  const TwoPart<F> back = two_product(quotient, denominator.high);
  const F rest = ((f - back.high) - back.low) - quotient * denominator.low;
  const TwoPart<F> s = fast_two_sum(quotient, rest / denominator.high);
  const TwoPart<F> square = multiply(s, s);
  const F z = square.high;
  const F q = polynomial(z, 0x1.9999999999996p-2, 0x1.2492492493049p-2, 0x1.c71c71c57e01fp-3,
                         0x1.745d18337989cp-3, 0x1.3b1362676b34fp-3, 0x1.1120c174b758ap-3,
                         0x1.de3190359c095p-4, 0x1.eb20c6622ac12p-4);
  const TwoPart<F> third = {splat<F>(0x1.5555555555555p-1), splat<F>(0x1.5555555555555p-55)};
  const TwoPart<F> cubic = multiply(multiply(s, square), third);
  const TwoPart<F> twice = {s.high + s.high, s.low + s.low};
  const TwoPart<F> start = add_parts(twice, cubic);
  const TwoPart<F> log = fast_two_sum(start.high, start.low + z * z * s.high * q);
  const TwoPart<F> scale = {splat<F>(0x1.71547652b82fep+0), splat<F>(0x1.777d0ffda0d24p-56)};
  return add_parts({parts.k, splat<F>(0)}, multiply(log, scale));
}

// x^y for x > 0 and finite.
template <class F>
CINCH_LANG_FN F pow_positive(F x, F y) {
  if constexpr (kIsF32<F>) {
    using D = Like<F, double>;
    const D product = convert<double>(y) * log2(convert<double>(x));
    const D highest = splat<D>(200), lowest = splat<D>(-200);
    const D inside = select(product < highest, select(product > lowest, product, lowest), highest);
    return convert<float>(exp2_of_sum(inside, splat<D>(0)));
  } else {
    const TwoPart<F> log = log2_two_part(x);
    // Beyond 2^11 in magnitude the product over- or underflows for sure: y is cut so that Dekker's
    // halves stay finite. |log| is 0 or at least 2^-53, so |y| up to 2^65 decides.
    const F most = splat<F>(0x1p+66);
    const F bounded = select(y > most, most, select(y < -most, -most, y));
    const TwoPart<F> head = two_product(bounded, log.high);
    const TwoPart<F> product = fast_two_sum(head.high, head.low + bounded * log.low);
    const F highest = splat<F>(1100), lowest = splat<F>(-1100);
    const Mask<F> too_high = product.high > highest, too_low = product.high < lowest;
    const F inside = select(too_high, highest, select(too_low, lowest, product.high));
    const F tail = select(too_high | too_low, splat<F>(0), product.low);
    return exp2_of_sum(inside, tail);
  }
}

template <class F>
CINCH_LANG_FN F pow(F x, F y) {
  const F zero = splat<F>(0), one = splat<F>(1), infinity = infinity_of<F>();
  const F magnitude = float_abs(x);
  const Mask<F> y_is_whole = trunc(y) == y;
  const F half_y = y * splat<F>(Element<F>(0.5));
  const Mask<F> y_is_odd = y_is_whole & (trunc(half_y) != half_y);
  F result = pow_positive(magnitude, y);
  // Zero and infinite bases: a power is 0 or infinite by the signs of base's logarithm and y.
  const Mask<F> base_is_special = (magnitude == zero) | (magnitude == infinity);
  const F special = select((magnitude == zero) == (y < zero), infinity, zero);
  result = select(base_is_special, special, result);
  // Infinite exponents: by whether the magnitude is above 1.
  const Mask<F> y_is_infinite = float_abs(y) == infinity;
  const F at_infinity = select((magnitude > one) == (y > zero), infinity, zero);
  result = select(y_is_infinite, select(magnitude == one, one, at_infinity), result);
  // Negative bases: a sign for odd whole exponents, NaN for others that are not whole.
  const Mask<F> is_negative = copysign(one, x) < zero;
  result = select(is_negative & y_is_odd & !y_is_infinite, copysign(result, x), result);
  const Mask<F> no_root = (x < zero) & (magnitude != infinity) & !y_is_whole;
  result = select(no_root | (x != x) | (y != y), nan_of<F>(), result);
  return select((y == zero) | (x == one), one, result);
}

}  // namespace lang
}  // namespace cinch
