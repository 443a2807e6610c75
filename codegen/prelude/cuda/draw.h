// draw.h: random draws for the four neighbouring elements of a lane. If their indices share a block
// of Philox, it is computed once. The values are those of the functions by index. Needs warp.h and
// the language's random.h.

namespace cinch {

// Are the four indices consecutive, from a multiple of four on?
CINCH_FN bool is_run(const u32 (&index)[4]) {
  return (index[0] & 3u) == 0u && index[1] == index[0] + 1u && index[2] == index[0] + 2u &&
         index[3] == index[0] + 3u;
}

// IsRun: this is known.
template <bool IsRun>
CINCH_FN void random_bits_four(const lang::DrawStream& stream, const u32 (&index)[4],
                               u32 (&out)[4]) {
  if (IsRun || is_run(index)) {
    const lang::Block<u32> block = lang::draw_block(stream, lang::kWordPlane, index[0] >> 2);
    CINCH_EACH out[c] = block.word[c];
    return;
  }
  if constexpr (!IsRun) {
    // Rare, so the text has it once, not four times.
#pragma unroll 1
    for (u32 i = 0; i < 4u; ++i) {
      const u32 bits = lang::random_bits(stream, one_of(index, i));
      CINCH_EACH out[c] = c == i ? bits : out[c];
    }
  }
}

template <bool IsRun>
CINCH_FN void random_four(const lang::DrawStream& stream, const u32 (&index)[4], f32 (&out)[4]) {
  u32 bits[4];
  random_bits_four<IsRun>(stream, index, bits);
  CINCH_EACH out[c] = lang::uniform_of_bits(bits[c]);
}

template <bool IsRun>
CINCH_FN void normal_four(const lang::DrawStream& stream, const u32 (&index)[4], f32 (&out)[4]) {
  if (IsRun || is_run(index)) {
    const lang::Block<u32> block = lang::draw_block(stream, lang::kWordPlane, index[0] >> 2);
    lang::normals_of_bits(block.word[0], block.word[1], out[0], out[1]);
    lang::normals_of_bits(block.word[2], block.word[3], out[2], out[3]);
    return;
  }
  if constexpr (!IsRun) {
#pragma unroll 1
    for (u32 i = 0; i < 4u; ++i) {
      const f32 x = lang::normal(stream, one_of(index, i));
      CINCH_EACH out[c] = c == i ? x : out[c];
    }
  }
}

// The 16 bits that round each of four elements, in order.
CINCH_FN u64 random_halves(const lang::DrawStream& stream, const u32 (&index)[4]) {
  if (is_run(index)) {
    // A block serves eight elements. The lane's four take its first or last two words.
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

// The same for rows whose first element, `first`, has an index that is a multiple of eight. Two
// neighbouring lanes share a block in each row. Of two rows, the even lane draws for the first and
// the odd lane for the second, and each gives the other its words.
template <u32 Rows>
CINCH_FN void random_half_rows(const lang::DrawStream& stream, u32 first, u64 (&halves)[Rows]) {
  const u32 lane = lane_index();
  const bool is_odd = (lane & 1u) != 0u;
  const u32 block_of_lane = first / 8u + lane / 2u;
  if constexpr (Rows == 1u) {
    const lang::Block<u32> block = lang::draw_block(stream, lang::kHalfPlane, block_of_lane);
    halves[0] = u64(is_odd ? block.word[2] : block.word[0]) |
                u64(is_odd ? block.word[3] : block.word[1]) << 32;
  } else {
    constexpr u32 kRowBlocks = kRowElems / 8u;
#pragma unroll
    for (u32 row = 0; row < Rows; row += 2u) {
      const lang::Block<u32> block = lang::draw_block(
          stream, lang::kHalfPlane, block_of_lane + (row + u32(is_odd)) * kRowBlocks);
      const u32 low = __shfl_xor_sync(kAllLanes, is_odd ? block.word[0] : block.word[2], 1);
      const u32 high = __shfl_xor_sync(kAllLanes, is_odd ? block.word[1] : block.word[3], 1);
      halves[row] = u64(is_odd ? low : block.word[0]) | u64(is_odd ? high : block.word[1]) << 32;
      halves[row + 1u] = u64(is_odd ? block.word[2] : low) | u64(is_odd ? block.word[3] : high)
                                                                 << 32;
    }
  }
}

CINCH_FN u32 half_of(u64 halves, u32 which) {
  return u32(halves >> (16u * which)) & 0xffffu;
}

// Like lang::stochastic_round, but one loop breaks the ties of all four elements.
template <class F>
CINCH_FN void stochastic_round_four(const lang::DrawStream& stream, u64 halves, const F (&x)[4],
                                    const u32 (&index)[4], F (&out)[4]) {
  F whole[4], missing[4];
  u32 ups = 0, ties = 0;
  CINCH_EACH {
    const auto first = lang::begin_rounding(x[c], half_of(halves, c));
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

// The same as integers of `Bits` bits, in fixed point. If an element is rare, the results are of no
// use. E is i32 or u32; T holds them.
template <class E, int Bits, lang::RoundedRange Range, class T>
CINCH_FN void fixed_int_four(u64 halves, const f32 (&x)[4], T (&out)[4], bool& is_rare) {
  CINCH_EACH {
    out[c] = T(lang::stochastic_int_but<E, Bits, Range>(is_rare, x[c], half_of(halves, c)));
  }
}
// The slow way for all four elements if one of them is rare.
template <class E, int Bits, lang::RoundedRange Range, class T>
CINCH_FN void stochastic_int_four(const lang::DrawStream& stream, u64 halves, const f32 (&x)[4],
                                  const u32 (&index)[4], T (&out)[4]) {
  bool is_rare = false;
  fixed_int_four<E, Bits, Range>(halves, x, out, is_rare);
#pragma unroll 1
  for (u32 i = 0; is_rare && i < 4u; ++i) {
    const f32 rounded =
        lang::stochastic_round_with(one_of(x, i), half_of(halves, i), stream, one_of(index, i));
    const T exact = T(lang::float_to_int<E>(rounded, Bits));
    CINCH_EACH out[c] = c == i ? exact : out[c];
  }
}

}  // namespace cinch
