// draws.h: the draws of consecutive elements, staged for a tile at a time, so that no Philox block
// is computed twice. The bits are those of the functions by index. Needs random.h of
// runtime/core/lang, and random_runs.h if the text contains the helpers.

namespace cinch {

struct WordStage {
  u32 at[kTile];
};
struct IndexStage {
  u32 at[kTile + 4 * W];
};
struct HalfStage {
  u16 at[kTile];
};
// Pairs are drawn whole, so one more number may be in front and one behind.
struct NormalStage {
  f32 at[kTile + 4 * W];
  u32 skipped;  // 1 if the first element is the second of its pair
};

CINCH_HELPER void stage_words(WordStage& stage, const lang::DrawStream& stream, u32 first,
                              u32 count);
CINCH_HELPER void stage_halves(HalfStage& stage, const lang::DrawStream& stream, u32 first,
                               u32 count);
CINCH_HELPER void stage_normals(NormalStage& stage, const lang::DrawStream& stream, u32 first,
                                u32 count);
CINCH_HELPER void stage_indices(IndexStage& stage, const lang::IndexPermutation& permutation,
                                u32 first, u32 count);
#if CINCH_HELPERS != 1
CINCH_HELPER void stage_words(WordStage& stage, const lang::DrawStream& stream, u32 first,
                              u32 count) {
  lang::fill_random_bits<W>(stream, first, count, stage.at);
}
CINCH_HELPER void stage_halves(HalfStage& stage, const lang::DrawStream& stream, u32 first,
                               u32 count) {
  lang::fill_random_halves<W>(stream, first, count, stage.at);
}
// Four vectors at once, because each step of a permutation waits for the one before. Images beyond
// the end are collected and mapped again together.
CINCH_HELPER void stage_indices(IndexStage& stage, const lang::IndexPermutation& permutation,
                                u32 first, u32 count) {
  constexpr u32 kAtOnce = 4;
  const Lanes<u32> last = wide(permutation.last);
  u32 beyond[kTile + W];
  u32 num_beyond = 0;
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < count; i += kAtOnce * W) {
    Lanes<u32> x[kAtOnce];
#pragma unroll
    for (u32 k = 0; k < kAtOnce; ++k) {
      const Lanes<u32> j = lane_numbers() + wide(first + i + k * W);
      x[k] = lang::select(j > last, last, j);
    }
    lang::permute_all(permutation, x);
#pragma unroll
    for (u32 k = 0; k < kAtOnce; ++k) {
      const u32 place = i + k * W;
      set_local_lanes(stage.at + place, x[k]);
      if (place >= count) continue;
      const u32 bits = bits_of_truth(Truth(x[k] > last) & first_lanes(count - place));
#pragma clang loop unroll(disable)
      for (u32 rest = bits; rest != 0; rest &= rest - 1)
        beyond[num_beyond++] = place + u32(__builtin_ctz(rest));
    }
  }
  while (num_beyond != 0) {
    u32 left = 0;
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < num_beyond; i += W) {
      const u32 num = least(u32(W), num_beyond - i);
      LaneArray<u32> some = {};
      for (u32 l = 0; l < num; ++l) some.at[l] = stage.at[beyond[i + l]];
      const auto images =
          lane_array(lang::permute_once(permutation, __builtin_bit_cast(Lanes<u32>, some)));
      for (u32 l = 0; l < num; ++l) {
        const u32 place = beyond[i + l];
        stage.at[place] = images.at[l];
        beyond[left] = place;
        left += images.at[l] > permutation.last;
      }
    }
    num_beyond = left;
  }
}
// Takes every other lane of two vectors, for words 2p and 2p + 1.
template <int Odd, int... I>
CINCH_CALL Lanes<u32> every_other(Lanes<u32> a, Lanes<u32> b, Indices<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I + Odd)...);
}
template <int Begin, int... I>
CINCH_CALL Lanes<f32> in_turn(Lanes<f32> even, Lanes<f32> odd, Indices<int, I...>) {
  return __builtin_shufflevector(even, odd, (Begin + I / 2 + (I % 2) * W)...);
}
CINCH_HELPER void stage_normals(NormalStage& stage, const lang::DrawStream& stream, u32 first,
                                u32 count) {
  u32 words[kTile + 4 * W];
  stage.skipped = first & 1;
  const u32 num_words = count + stage.skipped + 1;
  lang::fill_random_bits<W>(stream, first - stage.skipped, num_words, words);
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < num_words; i += 2 * W) {
    const Lanes<u32> a = local_lanes(words + i), b = local_lanes(words + i + W);
    Lanes<f32> even, odd;
    lang::normals_of_bits(every_other<0>(a, b, LaneIndices{}), every_other<1>(a, b, LaneIndices{}),
                          even, odd);
    set_local_lanes(stage.at + i, in_turn<0>(even, odd, LaneIndices{}));
    set_local_lanes(stage.at + i + W, in_turn<W / 2>(even, odd, LaneIndices{}));
  }
}
#endif

CINCH_CALL Lanes<u32> staged_words(const WordStage& stage, u32 place) {
  return local_lanes(stage.at + place);
}
CINCH_CALL Lanes<u32> staged_indices(const IndexStage& stage, u32 place) {
  return local_lanes(stage.at + place);
}
CINCH_CALL Lanes<f32> staged_uniforms(const WordStage& stage, u32 place) {
  return lang::uniform_of_bits(staged_words(stage, place));
}
template <class V>
CINCH_CALL V staged_round(const HalfStage& stage, u32 place, V x, const lang::DrawStream& stream,
                          u32 first) {
  const Lanes<u32> half = lang::convert<u32>(local_lanes(stage.at + place));
  const Lanes<u32> index = lane_numbers() + wide(first + place);
  return lang::stochastic_round_with(x, half, stream, index);
}
// Rounds to an integer of `Bits` bits. E is i32 or u32.
template <class E, int Bits, lang::RoundedRange Range = lang::RoundedRange::Any>
CINCH_CALL Lanes<E> staged_int(const HalfStage& stage, u32 place, Lanes<f32> x,
                               const lang::DrawStream& stream, u32 first) {
  const Lanes<u32> half = lang::convert<u32>(local_lanes(stage.at + place));
  return lang::stochastic_int<E, Bits, Range>(x, half, stream,
                                              lane_numbers() + wide(first + place));
}
// The same, except for lanes that it adds to `rare`. staged_int must round these again.
template <class E, int Bits, lang::RoundedRange Range>
CINCH_CALL Lanes<E> staged_int_but(Truth& rare, const HalfStage& stage, u32 place, Lanes<f32> x) {
  const Lanes<u32> half = lang::convert<u32>(local_lanes(stage.at + place));
  return lang::stochastic_int_but<E, Bits, Range>(rare, x, half);
}
CINCH_CALL Lanes<f32> staged_normals(const NormalStage& stage, u32 place) {
  return local_lanes(stage.at + stage.skipped + place);
}

}  // namespace cinch

// Linked instances for the rare lanes when f32 is rounded at random.
#define CINCH_LINKED_ROUNDING                                                                   \
  namespace cinch::lang {                                                                       \
  CINCH_INSTANCE Truth break_ties(Truth, Truth, Lanes<f32>, const DrawStream&, Lanes<u32>);     \
  CINCH_INSTANCE Lanes<i32> stochastic_int_slow<i32>(Lanes<f32>, Lanes<u32>, const DrawStream&, \
                                                     Lanes<u32>, int);                          \
  CINCH_INSTANCE Lanes<u32> stochastic_int_slow<u32>(Lanes<f32>, Lanes<u32>, const DrawStream&, \
                                                     Lanes<u32>, int);                          \
  }
