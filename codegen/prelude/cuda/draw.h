// draw.h: random draws for the four neighbouring elements of a lane: one block of Philox where
// their indices share it. The same values as the functions by index. Needs warp.h and the
// language's random.h.

namespace cinch {

// Do the four indices follow each other from a multiple of four?
CINCH_FN bool is_run(const u32 (&index)[4]) {
  return (index[0] & 3u) == 0u && index[1] == index[0] + 1u && index[2] == index[0] + 2u &&
         index[3] == index[0] + 3u;
}

// One of four by a number that is not known while compiling, without putting them into memory.
template <class T>
CINCH_FN T one_of(const T (&x)[4], u32 which) {
  const T low = (which & 1u) != 0u ? x[1] : x[0], high = (which & 1u) != 0u ? x[3] : x[2];
  return (which & 2u) != 0u ? high : low;
}

CINCH_FN void random_bits_four(const lang::DrawStream& stream, const u32 (&index)[4],
                               u32 (&out)[4]) {
  if (is_run(index)) {
    const lang::Block<u32> block = lang::draw_block(stream, lang::kWordPlane, index[0] >> 2);
    CINCH_EACH out[c] = block.word[c];
    return;
  }
  // Rare: once in the text, not four times.
#pragma unroll 1
  for (u32 i = 0; i < 4u; ++i) {
    const u32 bits = lang::random_bits(stream, one_of(index, i));
    CINCH_EACH out[c] = c == i ? bits : out[c];
  }
}

CINCH_FN void random_four(const lang::DrawStream& stream, const u32 (&index)[4], f32 (&out)[4]) {
  u32 bits[4];
  random_bits_four(stream, index, bits);
  CINCH_EACH out[c] = lang::uniform_of_bits(bits[c]);
}

CINCH_FN void normal_four(const lang::DrawStream& stream, const u32 (&index)[4], f32 (&out)[4]) {
  if (is_run(index)) {
    const lang::Block<u32> block = lang::draw_block(stream, lang::kWordPlane, index[0] >> 2);
    lang::normals_of_bits(block.word[0], block.word[1], out[0], out[1]);
    lang::normals_of_bits(block.word[2], block.word[3], out[2], out[3]);
    return;
  }
#pragma unroll 1
  for (u32 i = 0; i < 4u; ++i) {
    const f32 x = lang::normal(stream, one_of(index, i));
    CINCH_EACH out[c] = c == i ? x : out[c];
  }
}

// The 16 bits that each of four elements rounds with, in order.
CINCH_FN u64 random_halves(const lang::DrawStream& stream, const u32 (&index)[4]) {
  if (is_run(index)) {
    // A block serves eight elements: the lane's four are its first or second two words.
    const lang::Block<u32> block = lang::draw_block(stream, lang::kHalfPlane, index[0] >> 3);
    const bool is_upper = (index[0] & 4u) != 0u;
    return u64(is_upper ? block.word[2] : block.word[0]) |
           u64(is_upper ? block.word[3] : block.word[1]) << 32;
  }
  u64 halves = 0;
#pragma unroll 1
  for (u32 i = 0; i < 4u; ++i) {
    halves |= u64(lang::random_half(stream, lang::kHalfPlane, one_of(index, i))) << (16u * i);
  }
  return halves;
}

// As lang::stochastic_round, whose ties are broken here by one loop for all four.
template <class F>
CINCH_FN void stochastic_round_four(const lang::DrawStream& stream, const F (&x)[4],
                                    const u32 (&index)[4], F (&out)[4]) {
  const u64 halves = random_halves(stream, index);
  F whole[4], missing[4];
  u32 ups = 0, ties = 0;
  CINCH_EACH {
    const auto first = lang::begin_rounding(x[c], u32(halves >> (16u * c)) & 0xffffu);
    whole[c] = first.whole;
    missing[c] = first.missing;
    ups |= u32(first.up) << c;
    ties |= u32(first.tie) << c;
  }
#pragma unroll 1
  for (; ties != 0u; ties &= ties - 1u) {
    const u32 i = u32(__ffs(int(ties))) - 1u;
    ups |= u32(lang::tie_goes_up(one_of(missing, i), stream, one_of(index, i))) << i;
  }
  CINCH_EACH out[c] = lang::end_rounding(x[c], whole[c], (ups >> c & 1u) != 0u);
}

}  // namespace cinch
