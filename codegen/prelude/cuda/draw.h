// draw.h: random draws for the four neighbouring elements of a lane: one block of Philox where
// their indices share it. The same values as the functions by index. Needs warp.h and the
// language's random.h.

namespace cinch {

// Do the four indices follow each other from a multiple of four?
CINCH_FN bool is_run(const u32 (&index)[4]) {
  return (index[0] & 3u) == 0u && index[1] == index[0] + 1u && index[2] == index[0] + 2u &&
         index[3] == index[0] + 3u;
}

CINCH_FN void random_bits_four(const lang::DrawStream& stream, const u32 (&index)[4],
                               u32 (&out)[4]) {
  if (is_run(index)) {
    const lang::Block<u32> block = lang::draw_block(stream, lang::kWordPlane, index[0] >> 2);
    CINCH_EACH out[c] = block.word[c];
  } else {
    CINCH_EACH out[c] = lang::random_bits(stream, index[c]);
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
  } else {
    CINCH_EACH out[c] = lang::normal(stream, index[c]);
  }
}

template <class F>
CINCH_FN void stochastic_round_four(const lang::DrawStream& stream, const F (&x)[4],
                                    const u32 (&index)[4], F (&out)[4]) {
  if (is_run(index)) {
    // A block serves eight elements: the lane's four are its first or second two words.
    const lang::Block<u32> block = lang::draw_block(stream, lang::kHalfPlane, index[0] >> 3);
    const bool is_upper = (index[0] & 4u) != 0u;
    const u32 words[2] = {is_upper ? block.word[2] : block.word[0],
                          is_upper ? block.word[3] : block.word[1]};
    CINCH_EACH {
      const u32 half = (words[c / 2u] >> (16u * (c & 1u))) & 0xffffu;
      out[c] = lang::stochastic_round_with(x[c], half, stream, index[c]);
    }
  } else {
    CINCH_EACH out[c] = lang::stochastic_round(x[c], stream, index[c]);
  }
}

}  // namespace cinch
