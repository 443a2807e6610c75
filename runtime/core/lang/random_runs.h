// random_runs.h: the draws of random.h for consecutive elements at once, under Clang only: no block
// is computed twice, where the forms by index compute one for each lane. Same bits. Needs random.h.

#if CINCH_LANG_VECTORS
namespace cinch {
namespace lang {

template <class T, T... I>
struct Indices {};

// Lanes of a and b in groups of four: {a0 b0 a1 b1} (Upper: 2 and 3) and {a0 a1 b0 b1}.
template <int Upper, class V, int... I>
CINCH_LANG_FN V interleave_lanes(V a, V b, Indices<int, I...>) {
  return __builtin_shufflevector(a, b,
                                 ((I & 1) * kLanes<V> + (I & ~3) + (I % 4) / 2 + 2 * Upper)...);
}
template <int Upper, class V, int... I>
CINCH_LANG_FN V interleave_pairs(V a, V b, Indices<int, I...>) {
  return __builtin_shufflevector(a, b,
                                 ((I % 4) / 2 * kLanes<V> + (I & ~3) + (I & 1) + 2 * Upper)...);
}
// Lane l of group q of four computes block (l mod 4) * W / 4 + q, so that the transposed words come
// out in the order of the elements.
template <class V, int... I>
CINCH_LANG_FN V run_blocks(u32 first_block, Indices<int, I...>) {
  constexpr V offsets = {u32((I % 4) * (kLanes<V> / 4) + I / 4)...};
  return splat<V>(first_block) + offsets;
}
template <int Begin, class V, int... I>
CINCH_LANG_FN auto part_of(V x, Indices<int, I...>) {
  return __builtin_shufflevector(x, x, (Begin + I)...);
}

// The words of 4W elements from the block's first on: out[i] lane l is element 4 * first_block +
// i * W + l. V: u32 lanes, W = 4, 8, 16 or more.
template <class V>
CINCH_LANG_FN void random_word_run(const DrawStream& stream, u32 plane, u32 first_block,
                                   V (&out)[4]) {
  using Lanes = __make_integer_seq<Indices, int, kLanes<V>>;
  const Block<V> b = draw_block(stream, plane, run_blocks<V>(first_block, Lanes{}));
  const V t0 = interleave_lanes<0>(b.word[0], b.word[1], Lanes{});
  const V t1 = interleave_lanes<1>(b.word[0], b.word[1], Lanes{});
  const V t2 = interleave_lanes<0>(b.word[2], b.word[3], Lanes{});
  const V t3 = interleave_lanes<1>(b.word[2], b.word[3], Lanes{});
  out[0] = interleave_pairs<0>(t0, t2, Lanes{});
  out[1] = interleave_pairs<1>(t0, t2, Lanes{});
  out[2] = interleave_pairs<0>(t1, t3, Lanes{});
  out[3] = interleave_pairs<1>(t1, t3, Lanes{});
}

// The 16-bit draws of 8W elements from the block's first on: out[i] lane l is element
// 8 * first_block + i * W + l.
template <class V>
CINCH_LANG_FN void random_half_run(const DrawStream& stream, u32 first_block, V (&out)[8]) {
  using Lanes = __make_integer_seq<Indices, int, kLanes<V>>;
  using H = Vec<u16, 2 * kLanes<V>>;
  V words[4];
  random_word_run(stream, kHalfPlane, first_block, words);
  for (int i = 0; i < 4; ++i) {
    const H both = __builtin_bit_cast(H, words[i]);
    out[2 * i] = __builtin_convertvector(part_of<0>(both, Lanes{}), V);
    out[2 * i + 1] = __builtin_convertvector(part_of<kLanes<V>>(both, Lanes{}), V);
  }
}

// The words of elements first … first + count - 1 into memory, W lanes at a time.
template <int W>
CINCH_LANG_FN void fill_random_bits(const DrawStream& stream, u32 first, u32 count, u32* out) {
  using V = Vec<u32, W>;
  u32 i = 0;
  for (; i < count && (first + i) % 4 != 0; ++i) out[i] = random_bits(stream, first + i);
  for (; i + 4 * W <= count; i += 4 * W) {
    V words[4];
    random_word_run(stream, kWordPlane, (first + i) / 4, words);
    __builtin_memcpy(out + i, words, sizeof words);
  }
  for (; i < count; ++i) out[i] = random_bits(stream, first + i);
}
// The first 16-bit draws of elements first … first + count - 1 into memory.
template <int W>
CINCH_LANG_FN void fill_random_halves(const DrawStream& stream, u32 first, u32 count, u16* out) {
  using V = Vec<u32, W>;
  u32 i = 0;
  for (; i < count && (first + i) % 8 != 0; ++i) {
    out[i] = u16(random_half(stream, kHalfPlane, first + i));
  }
  for (; i + 8 * W <= count; i += 8 * W) {
    // Words in order of their elements are halves in order of theirs.
    V words[4];
    random_word_run(stream, kHalfPlane, (first + i) / 8, words);
    __builtin_memcpy(out + i, words, sizeof words);
  }
  for (; i < count; ++i) out[i] = u16(random_half(stream, kHalfPlane, first + i));
}

}  // namespace lang
}  // namespace cinch
#endif
