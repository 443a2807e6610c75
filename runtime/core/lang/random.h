// random.h: counter-based draws (Philox4x32-10; Salmon et al., 2011): a value is a function of
// seed, step, tensor, piece, worker, site and element index alone, so it is the same on every
// target and in any order. docs/language_bits.md fixes all of it. Needs trig.h.

namespace cinch {
namespace lang {

// The four words of a block, in lanes: lane l holds the block of counter lane l.
template <class U>
struct Block {
  U word[4];
};

#if CINCH_LANG_VECTORS
template <class T, T... I>
struct Indices {};
template <class V>
using LaneIndices = __make_integer_seq<Indices, int, kLanes<V>>;

// Lane l of the result: lane l (Odd = 0: the even one of its pair, 1: the odd one) of a for even l,
// of b for odd l.
template <int Odd, class U, int... I>
CINCH_LANG_FN U join_pairs(U a, U b, Indices<int, I...>) {
  return __builtin_shufflevector(a, b, ((I & ~1) + Odd + (I & 1) * kLanes<U>)...);
}
#endif

// The high and low halves of the 64-bit products of the lanes of a with m.
template <class U>
CINCH_LANG_FN void multiply_wide(U a, u32 m, U& high, U& low) {
#if CINCH_LANG_VECTORS
  if constexpr (!kIsScalar<U>) {
    // Even and odd lanes apart: each is one 32 by 32 bit multiplication of 64-bit lanes. Shuffles
    // join them: shifts would be folded into slower 64-bit multiplications.
    using L = Vec<u64, kLanes<U> / 2>;
    const L pairs = __builtin_bit_cast(L, a);
    const L factor = splat<L>(m);
    const U even = __builtin_bit_cast(U, (pairs & splat<L>(0xffffffffull)) * factor);
    const U odd = __builtin_bit_cast(U, (pairs >> splat<L>(32)) * factor);
    high = join_pairs<1>(even, odd, LaneIndices<U>{});
    low = join_pairs<0>(even, odd, LaneIndices<U>{});
    return;
  }
#endif
  if constexpr (kIsScalar<U>) {
    const u64 product = (u64)a * m;
    high = u32(product >> 32);
    low = u32(product);
  }
}

template <class U>
CINCH_LANG_FN Block<U> philox(U c0, U c1, U c2, U c3, u32 key0, u32 key1) {
#pragma unroll
  for (int i = 0; i < 10; ++i) {
    U high0, low0, high1, low1;
    multiply_wide(c0, 0xd2511f53u, high0, low0);
    multiply_wide(c2, 0xcd9e8d57u, high1, low1);
    c0 = high1 ^ c1 ^ splat<U>(key0);
    c1 = low1;
    c2 = high0 ^ c3 ^ splat<U>(key1);
    c3 = low0;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

// What a call draws with: eight words, as kernels get them.
enum DrawWord {
  kSeedLow,
  kSeedHigh,
  kStepLow,
  kStepHigh,
  kTensor,
  kPiece,
  kWorker,
  kDrawWords = 8
};

// Which draws of a site: a counter plane.
enum DrawPlane : u32 { kWordPlane = 0, kHalfPlane = 1, kTiePlane = 2, kPermutationPlane = 3 };

// The draws of one site in one call: all but the block number and the plane.
struct DrawStream {
  u32 key0, key1;
  u32 site;
  u32 step_low, step_high;
};

// `site` has the loop iteration added already. Shared draws leave the worker out.
CINCH_LANG_FN DrawStream draw_stream(const u32* draw, u32 site, bool shared) {
  const u32 worker = shared ? 0xffffffffu : draw[kWorker];
  const Block<u32> key =
      philox(draw[kTensor], draw[kPiece], worker, 0x636e6368u, draw[kSeedLow], draw[kSeedHigh]);
  return {key.word[0], key.word[1], site, draw[kStepLow], draw[kStepHigh]};
}

template <class U>
CINCH_LANG_FN Block<U> draw_block(const DrawStream& stream, u32 plane, U block) {
  return philox(block, splat<U>(stream.site), splat<U>(stream.step_low),
                splat<U>((stream.step_high << 8) | plane), stream.key0, stream.key1);
}

// Word number `which` (0..3, by lane) of a block.
template <class U>
CINCH_LANG_FN U word_of(const Block<U>& block, U which) {
  const Mask<U> odd = (which & splat<U>(1)) != splat<U>(0);
  const Mask<U> upper = (which & splat<U>(2)) != splat<U>(0);
  const U low = select(odd, block.word[1], block.word[0]);
  const U high = select(odd, block.word[3], block.word[2]);
  return select(upper, high, low);
}

// The 32-bit word of each element: word index mod 4 of block index / 4.
template <class U>
CINCH_LANG_FN U random_bits(const DrawStream& stream, U index) {
  return word_of(draw_block(stream, kWordPlane, U(index >> splat<U>(2))), U(index & splat<U>(3)));
}
// Uniform in [0, 1): the upper 24 bits of a word.
template <class U>
CINCH_LANG_FN Like<U, float> uniform_of_bits(U bits) {
  return convert<float>(as_signed(U(bits >> splat<U>(8)))) * splat<Like<U, float>>(0x1p-24f);
}
template <class U>
CINCH_LANG_FN Like<U, float> random(const DrawStream& stream, U index) {
  return uniform_of_bits(random_bits(stream, index));
}

// Two standard normals from two words (Box and Muller, 1958): the first word is the radius, the
// second the angle.
template <class U>
CINCH_LANG_FN void normals_of_bits(U radius_bits, U angle_bits, Like<U, float>& even,
                                   Like<U, float>& odd) {
  using F = Like<U, float>;
  const F u = convert<float>(radius_bits) * splat<F>(0x1p-32f) + splat<F>(0x1p-33f);
  const F radius = sqrt(F(splat<F>(-2.0f) * log(u)));
  F cosine, sine;
  cos_sin_of_turn(uniform_of_bits(angle_bits), cosine, sine);
  even = radius * cosine;
  odd = radius * sine;
}
// Elements 4b + 2p and 4b + 2p + 1 come from words 2p and 2p + 1 of block b.
template <class U>
CINCH_LANG_FN Like<U, float> normal(const DrawStream& stream, U index) {
  using F = Like<U, float>;
  const Block<U> block = draw_block(stream, kWordPlane, U(index >> splat<U>(2)));
  const Mask<U> upper = (index & splat<U>(2)) != splat<U>(0);
  F even, odd;
  normals_of_bits(select(upper, block.word[2], block.word[0]),
                  select(upper, block.word[3], block.word[1]), even, odd);
  return select(mask_like<F>((index & splat<U>(1)) != splat<U>(0)), odd, even);
}

// The 16-bit draw of each element: half index mod 2 (low first) of word (index / 2) mod 4 of block
// index / 8.
template <class U>
CINCH_LANG_FN U random_half(const DrawStream& stream, u32 plane, U index) {
  const Block<U> block = draw_block(stream, plane, U(index >> splat<U>(3)));
  const U word = word_of(block, U((index >> splat<U>(1)) & splat<U>(3)));
  const U shift = (index & splat<U>(1)) << splat<U>(4);
  return (word >> shift) & splat<U>(0xffffu);
}

// Where the first 16 bits tie, 16 more decide: once in tens of thousands of elements, so not worth
// a place in every kernel that rounds, nor any register of it. CUDA's calls cost registers.
#if CINCH_LANG_VECTORS
#define CINCH_LANG_RARE_FN __attribute__((noinline))  // not static: instances can be linked
#if __has_feature(address_sanitizer)
#define CINCH_LANG_TIE_FN CINCH_LANG_RARE_FN  // what a sanitizer adds keeps no vectors
#else
#define CINCH_LANG_TIE_FN CINCH_LANG_RARE_FN __attribute__((preserve_all))
#endif
#else
#define CINCH_LANG_TIE_FN CINCH_LANG_FN
#endif
// One element's; `missing` is Rounding's.
template <class E>
CINCH_LANG_FN bool tie_goes_up(E missing, const DrawStream& stream, u32 index) {
  return E(random_half(stream, kTiePlane, index)) < missing * E(65536);
}
template <class F>
CINCH_LANG_TIE_FN Mask<F> break_ties(Mask<F> up, Mask<F> tie, F missing, const DrawStream& stream,
                                     Like<F, u32> index) {
  for (int i = 0; i < kLanes<F>; ++i) {
    if (!lane(tie, i)) continue;
    if (tie_goes_up(lane(missing, i), stream, lane(index, i))) {
      set_lane(up, i, Element<Mask<F>>(-1));
    }
  }
  return up;
}
#undef CINCH_LANG_TIE_FN

// What the first 16 bits decide.
template <class F>
struct Rounding {
  F whole;    // floor of the magnitude
  F missing;  // by how much the draw falls short, in units of 2^-16: rounding keeps it on its side
              // of 0 and of 1
  Mask<F> up, tie;
};
template <class F>
CINCH_LANG_FN Rounding<F> begin_rounding(F x, Like<F, u32> half) {
  using E = Element<F>;
  const F magnitude = float_abs(x);
  const F whole = floor(magnitude);
  const F fraction = magnitude - whole;
  const F missing = fraction * splat<F>(E(65536)) - convert<E>(as_signed(half));
  const Mask<F> up = missing >= splat<F>(1);
  const Mask<F> tie = (missing > splat<F>(0)) ^ up;
  return {whole, missing, up, tie};
}
template <class F>
CINCH_LANG_FN F end_rounding(F x, F whole, Mask<F> up) {
  const F rounded = select(up, whole + splat<F>(1), whole);
  return float_of_bits<F>(bits_of(rounded) | (bits_of(x) & sign_bit<F>()));
}

// stochastic_round with the element's first 16 bits already drawn (0..65535 in each lane): away
// from zero when u < |x| - floor(|x|). Only where these bits tie are 16 more drawn.
template <class F>
CINCH_LANG_FN F stochastic_round_with(F x, Like<F, u32> half, const DrawStream& stream,
                                      Like<F, u32> index) {
  const Rounding<F> first = begin_rounding(x, half);
  Mask<F> up = first.up;
  if (__builtin_expect(any(first.tie), 0)) {
    up = break_ties<F>(up, first.tie, first.missing, stream, index);
  }
  return end_rounding(x, first.whole, up);
}
template <class F>
CINCH_LANG_FN F stochastic_round(F x, const DrawStream& stream, Like<F, u32> index) {
  return stochastic_round_with(x, random_half(stream, kHalfPlane, index), stream, index);
}

// What is known of the number that stochastic_int rounds.
enum class RoundedRange {
  Any,
  Within,  // an integer of Bits bits holds it, and so does fixed point: at most 32766 either way
  NonNegative  // and it is not below 0
};
// x's sign on a number that is not negative. Zeros have none to give: theirs is 0.
template <class I, class F>
CINCH_LANG_FN I with_sign_of(I magnitude, F x) {
#if CINCH_LANG_NAMES_AVX2
  if constexpr (kSame<F, Vec<float, 8>>) {
    using Ints = int __attribute__((vector_size(32)));
    return __builtin_bit_cast(I, __builtin_ia32_psignd256(__builtin_bit_cast(Ints, magnitude),
                                                          __builtin_bit_cast(Ints, x)));
  }
#endif
  const I sign = as_signed(bits_of(x)) >> splat<I>(31);
  return (magnitude ^ sign) - sign;
}
// Are the 16 bits below the point all ones? Ones above as well are only in sums beyond.
template <class F, class I>
CINCH_LANG_FN Mask<F> ends_in_ones(I sum) {
#if CINCH_LANG_VECTORS
  if constexpr (!kIsScalar<F>) {
    using Words = Vec<i16, 2 * kLanes<F>>;
    return __builtin_bit_cast(
        Mask<F>, __builtin_bit_cast(Words, sum) == __builtin_bit_cast(Words, splat<I>(-1)));
  }
#endif
  if constexpr (kIsScalar<F>) return (sum & 0xffff) == 0xffff;
}
// The same value in fixed point: |x| in units of 2^-16 plus 65535 - half carries into the whole
// part just where the draw is below the fraction. Where all 16 bits below come out as ones the draw
// ties, or x is a whole number less than its own half: those lanes are added to `rare`, and so are
// magnitudes that fixed point does not hold; what is returned for them is of no use.
template <class E, int Bits, RoundedRange Range = RoundedRange::Any, class F>
CINCH_LANG_FN Like<F, E> stochastic_int_but(Mask<F>& rare, F x, Like<F, u32> half) {
  constexpr bool kSigned = kIsSigned<E>, kIsWithin = Range != RoundedRange::Any;
  constexpr int kMostBits = 14;
  using I = Like<F, i32>;
  // From there on a short integer saturates, so it may count as that.
  const F most = splat<F>(float(1u << (Bits < kMostBits ? Bits : kMostBits)) * 65536.0f);
  const F magnitude = Range == RoundedRange::NonNegative ? x : float_abs(x);
  const F units = magnitude * splat<F>(65536.0f);
  const I complement = as_signed(half) ^ splat<I>(65535);
  I sum;
  if constexpr (kIsWithin) {
    sum = convert<i32>(units) + complement;
  } else {
#if CINCH_LANG_NAMES_AVX2
    if constexpr (kSame<F, Vec<float, 8>>) {
      // The instruction itself marks what does not fit by the sign bit, which the sum keeps.
      using Ints = int __attribute__((vector_size(32)));
      const Ints fixed = __builtin_ia32_cvttps2dq256(__builtin_bit_cast(Avx2Floats, units));
      sum = __builtin_bit_cast(I, fixed) + complement;
      rare |= sum < splat<I>(0);
    } else
#endif
    {
      const F held = float_min_with(float_max_with(units, splat<F>(0)), most);  // NaN counts as 0
      sum = convert<i32>(held) + complement;
      if constexpr (Bits > kMostBits) rare |= units >= most;
    }
  }
  rare |= ends_in_ones<F>(sum);
  const I rounded = sum >> splat<I>(16);
  if constexpr (Range == RoundedRange::NonNegative) return convert<E>(rounded);
  const I whole = with_sign_of(rounded, x);
  if constexpr (kIsWithin) {
    return convert<E>(whole);
  } else if constexpr (Bits > 16) {
    return convert<E>(kSigned ? whole : max(whole, splat<I>(0)));
  } else {
    constexpr i32 kTop = ((1 << (Bits - (kSigned ? 1 : 0) - 1)) - 1) * 2 + 1;
    const I above = max(whole, splat<I>(kSigned ? -kTop - 1 : 0));
    return convert<E>(min(above, splat<I>(kTop)));
  }
}

#if CINCH_LANG_VECTORS
// An integer of `bits` bits (E: i32 or u32) from a float rounded by stochastic_round_with: the long
// way round.
template <class E, class F>
CINCH_LANG_RARE_FN Like<F, E> stochastic_int_slow(F x, Like<F, u32> half, const DrawStream& stream,
                                                  Like<F, u32> index, int bits) {
  return float_to_int<E>(stochastic_round_with(x, half, stream, index), bits);
}
#undef CINCH_LANG_RARE_FN
template <class E, int Bits, RoundedRange Range = RoundedRange::Any, class F>
CINCH_LANG_FN Like<F, E> stochastic_int(F x, Like<F, u32> half, const DrawStream& stream,
                                        Like<F, u32> index) {
  Mask<F> rare = (Mask<F>)0;
  const Like<F, E> fixed = stochastic_int_but<E, Bits, Range>(rare, x, half);
  if (__builtin_expect(any(rare), 0)) return stochastic_int_slow<E>(x, half, stream, index, Bits);
  return fixed;
}
#endif

// A keyed permutation of [0, size): element j of random_index is the image of j. A Feistel network
// of 8 rounds permutes [0, 2^b), b the bits of size - 1 and at least 10 (fewer bits mix badly); an
// image beyond the end is mapped again (cycle walking), which ends because j's own cycle comes back
// inside.
struct IndexPermutation {
  u32 round_key[8];
  u32 last;  // size - 1
  u32 right_bits, left_mask, right_mask;
};

// 1 <= size <= 2^32; 0 counts as 1.
CINCH_LANG_FN IndexPermutation index_permutation(const DrawStream& stream, u64 size) {
  IndexPermutation result;
  for (u32 i = 0; i < 2; ++i) {
    const Block<u32> block = draw_block(stream, kPermutationPlane, i);
    for (int j = 0; j < 4; ++j) result.round_key[4 * i + u32(j)] = block.word[j];
  }
  result.last = size == 0 ? 0u : u32(size - 1);
  const u32 bits = max(32 - clz(result.last), 10u);
  const u32 left_bits = bits / 2;
  result.right_bits = bits - left_bits;
  result.left_mask = (1u << left_bits) - 1;
  result.right_mask = (1u << result.right_bits) - 1;
  return result;
}

template <class U>
CINCH_LANG_FN U mix_round(U half, u32 key) {
  U v = (half + splat<U>(key)) * splat<U>(0x9e3779b1u);
  v = (v ^ (v >> splat<U>(15))) * splat<U>(0x85ebca77u);
  return v ^ (v >> splat<U>(13));
}
template <class U>
CINCH_LANG_FN U permute_once(const IndexPermutation& permutation, U x) {
  const U right_mask = splat<U>(permutation.right_mask);
  const U left_mask = splat<U>(permutation.left_mask);
  U left = x >> splat<U>(permutation.right_bits);
  U right = x & right_mask;
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    left = left ^ (mix_round(right, permutation.round_key[i]) & left_mask);
    right = right ^ (mix_round(left, permutation.round_key[i + 1]) & right_mask);
  }
  return (left << splat<U>(permutation.right_bits)) | right;
}
// Several at a time, step by step.
template <class U, int Num>
CINCH_LANG_FN void permute_all(const IndexPermutation& permutation, U (&x)[Num]) {
  const U right_mask = splat<U>(permutation.right_mask);
  const U left_mask = splat<U>(permutation.left_mask);
  const U right_bits = splat<U>(permutation.right_bits);
  U left[Num], right[Num];
#pragma unroll
  for (int k = 0; k < Num; ++k) {
    left[k] = x[k] >> right_bits;
    right[k] = x[k] & right_mask;
  }
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
#pragma unroll
    for (int k = 0; k < Num; ++k)
      left[k] = left[k] ^ (mix_round(right[k], permutation.round_key[i]) & left_mask);
#pragma unroll
    for (int k = 0; k < Num; ++k)
      right[k] = right[k] ^ (mix_round(left[k], permutation.round_key[i + 1]) & right_mask);
  }
#pragma unroll
  for (int k = 0; k < Num; ++k) x[k] = (left[k] << right_bits) | right[k];
}
// j at or beyond the size counts as the last element.
template <class U>
CINCH_LANG_FN U random_index(const IndexPermutation& permutation, U j) {
  const U last = splat<U>(permutation.last);
  U x = permute_once(permutation, select(j > last, last, j));
  while (any(x > last)) x = select(x > last, permute_once(permutation, x), x);
  return x;
}

}  // namespace lang
}  // namespace cinch
