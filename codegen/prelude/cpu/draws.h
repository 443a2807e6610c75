// draws.h: the draws of consecutive elements, staged a tile at a time so that no Philox block is
// computed twice. Same bits as the forms by index. Needs random_runs.h of runtime/core/lang.

namespace cinch {

struct WordStage {
  u32 at[kTile];
};
struct HalfStage {
  u16 at[kTile];
};
// Two more words in front and behind: a normal value needs its pair's.
struct NormalStage {
  u32 at[kTile + 2 * W];
  u32 odd;  // 1 if the first element is the second of its pair
};

static __attribute__((noinline, unused)) void stage_words(WordStage& stage,
                                                          const lang::DrawStream& stream, u32 first,
                                                          u32 count) {
  lang::fill_random_bits<W>(stream, first, count, stage.at);
}
static __attribute__((noinline, unused)) void stage_halves(HalfStage& stage,
                                                           const lang::DrawStream& stream,
                                                           u32 first, u32 count) {
  lang::fill_random_halves<W>(stream, first, count, stage.at);
}
static __attribute__((noinline, unused)) void stage_normals(NormalStage& stage,
                                                            const lang::DrawStream& stream,
                                                            u32 first, u32 count) {
  stage.odd = first & 1;
  lang::fill_random_bits<W>(stream, first - stage.odd, count + stage.odd + 1, stage.at);
}

CINCH_CALL Lanes<u32> staged_words(const WordStage& stage, u32 place) {
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
template <int... I>
CINCH_CALL Lanes<u32> radius_words(Lanes<u32> x, Indices<int, I...>) {
  return __builtin_shufflevector(x, x, (I & ~1)...);
}
template <int... I>
CINCH_CALL Lanes<u32> angle_words(Lanes<u32> x, Indices<int, I...>) {
  return __builtin_shufflevector(x, x, (I | 1)...);
}
CINCH_CALL Lanes<f32> normals_at(const u32* words) {
  const Lanes<u32> pairs = local_lanes(words);
  Lanes<f32> even, odd;
  lang::normals_of_bits(radius_words(pairs, LaneIndices{}), angle_words(pairs, LaneIndices{}), even,
                        odd);
  return op_select(Truth((lane_numbers() & wide(1u)) != 0), odd, even);
}
CINCH_CALL Lanes<f32> staged_normals(const NormalStage& stage, u32 place) {
  const Lanes<f32> first = normals_at(stage.at + place);
  if (stage.odd == 0) return first;
  // The group begins inside a pair: the last lane is the first of the next vector.
  Lanes<f32> x = lanes_down<1>(first);
  x[W - 1] = normals_at(stage.at + place + W)[0];
  return x;
}

}  // namespace cinch
