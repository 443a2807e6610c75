// random_runs.h: the draws of random.h for consecutive elements at once, under Clang only: no block
// is computed twice, where the forms by index compute one for each lane. Same bits. Needs random.h.

#if CINCH_LANG_VECTORS
namespace cinch {
namespace lang {

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
  constexpr V kOffsets = {u32((I % 4) * (kLanes<V> / 4) + I / 4)...};
  return splat<V>(first_block) + kOffsets;
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
  using Lanes = LaneIndices<V>;
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
  using Lanes = LaneIndices<V>;
  using H = Vec<u16, 2 * kLanes<V>>;
  V words[4];
  random_word_run(stream, kHalfPlane, first_block, words);
  for (int i = 0; i < 4; ++i) {
    const H both = __builtin_bit_cast(H, words[i]);
    out[2 * i] = __builtin_convertvector(part_of<0>(both, Lanes{}), V);
    out[2 * i + 1] = __builtin_convertvector(part_of<kLanes<V>>(both, Lanes{}), V);
  }
}

// As many whole runs of words (each 4 L elements of 4 / PerWord bytes) as fit between i and count;
// first + i stands at a block's begin. Gives the element behind them.
template <int L, int PerWord, class T>
CINCH_LANG_FN u32 fill_runs(const DrawStream& stream, u32 plane, u32 first, u32 i, u32 count,
                            T* out) {
  constexpr u32 kRun = 4 * L * PerWord;
  for (; count - i >= kRun; i += kRun) {
    Vec<u32, L> words[4];
    random_word_run(stream, plane, (first + i) / (4 * PerWord), words);
    __builtin_memcpy(out + i, words, sizeof words);
  }
  return i;
}

// The words of elements first … first + count - 1 into memory, for a machine of W lanes: twice as
// many at a time, so that the rounds of two blocks overlap (measured on a Zen 4 core, November
// 2026: 0.22 ns a half with 32 lanes and AVX-512, 0.29 with 16).
template <int W>
CINCH_LANG_FN void fill_random_bits(const DrawStream& stream, u32 first, u32 count, u32* out) {
  u32 i = 0;
  for (; i < count && (first + i) % 4 != 0; ++i) out[i] = random_bits(stream, first + i);
  i = fill_runs<2 * W, 1>(stream, kWordPlane, first, i, count, out);
  i = fill_runs<4, 1>(stream, kWordPlane, first, i, count, out);
  for (; i < count; ++i) out[i] = random_bits(stream, first + i);
}
// The first 16-bit draws of elements first … first + count - 1 into memory: words in order of their
// elements are halves in order of theirs.
template <int W>
CINCH_LANG_FN void fill_random_halves(const DrawStream& stream, u32 first, u32 count, u16* out) {
  u32 i = 0;
  for (; i < count && (first + i) % 8 != 0; ++i) {
    out[i] = u16(random_half(stream, kHalfPlane, first + i));
  }
  i = fill_runs<2 * W, 2>(stream, kHalfPlane, first, i, count, out);
  i = fill_runs<4, 2>(stream, kHalfPlane, first, i, count, out);
  for (; i < count; ++i) out[i] = u16(random_half(stream, kHalfPlane, first + i));
}

}  // namespace lang
}  // namespace cinch
#endif
