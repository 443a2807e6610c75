// threads.h: what CUDA's threads do together: barriers, shuffles, votes. Needs hooks.h.

CINCH_EMULATED_FN void __syncthreads() {
  cinch_emulated_sync_block(0, 0, 0);
}
CINCH_EMULATED_FN int __syncthreads_count(int predicate) {
  return int(cinch_emulated_sync_block(1, predicate != 0, 0));
}
CINCH_EMULATED_FN int __syncthreads_and(int predicate) {
  return int(cinch_emulated_sync_block(2, predicate != 0, 0));
}
CINCH_EMULATED_FN int __syncthreads_or(int predicate) {
  return int(cinch_emulated_sync_block(3, predicate != 0, 0));
}
CINCH_EMULATED_FN void __syncwarp(unsigned mask = 0xffffffffu) {
  cinch_emulated_sync_warp(mask, 0);
}

CINCH_EMULATED_FN unsigned cinch_emulated_lane() {
  const uint3 at = threadIdx;
  const dim3 size = blockDim;
  return (at.x + size.x * (at.y + size.y * at.z)) & 31u;
}
template <class T>
CINCH_EMULATED_FN T cinch_emulated_from(unsigned mask, T x, unsigned source) {
  return cinch_emulated_value<T>(cinch_emulated_shuffle(mask, cinch_emulated_word(x), source, 0));
}
// A width splits the warp into parts that shuffle separately.
template <class T>
CINCH_EMULATED_FN T __shfl_sync(unsigned mask, T x, int source, int width = 32) {
  const unsigned part = cinch_emulated_lane() & ~unsigned(width - 1);
  return cinch_emulated_from(mask, x, part + (unsigned(source) & unsigned(width - 1)));
}
template <class T>
CINCH_EMULATED_FN T __shfl_up_sync(unsigned mask, T x, unsigned distance, int width = 32) {
  const unsigned lane = cinch_emulated_lane();
  const bool has = (lane & unsigned(width - 1)) >= distance;
  return cinch_emulated_from(mask, x, has ? lane - distance : lane);
}
template <class T>
CINCH_EMULATED_FN T __shfl_down_sync(unsigned mask, T x, unsigned distance, int width = 32) {
  const unsigned lane = cinch_emulated_lane();
  const bool has = (lane & unsigned(width - 1)) + distance < unsigned(width);
  return cinch_emulated_from(mask, x, has ? lane + distance : lane);
}
template <class T>
CINCH_EMULATED_FN T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32) {
  const unsigned lane = cinch_emulated_lane();
  const unsigned source = lane ^ unsigned(bits);
  const bool has = source < (lane & ~unsigned(width - 1)) + unsigned(width);
  return cinch_emulated_from(mask, x, has ? source : lane);
}

CINCH_EMULATED_FN unsigned __ballot_sync(unsigned mask, int predicate) {
  return cinch_emulated_vote(0, mask, predicate != 0, 0);
}
CINCH_EMULATED_FN int __any_sync(unsigned mask, int predicate) {
  return int(cinch_emulated_vote(1, mask, predicate != 0, 0));
}
CINCH_EMULATED_FN int __all_sync(unsigned mask, int predicate) {
  return int(cinch_emulated_vote(2, mask, predicate != 0, 0));
}
template <class T>
CINCH_EMULATED_FN unsigned __match_any_sync(unsigned mask, T x) {
  return cinch_emulated_match(0, mask, cinch_emulated_word(x), 0);
}
template <class T>
CINCH_EMULATED_FN unsigned __match_all_sync(unsigned mask, T x, int* predicate) {
  const unsigned all = cinch_emulated_match(1, mask, cinch_emulated_word(x), 0);
  *predicate = all != 0;
  return all;
}
CINCH_EMULATED_FN unsigned __activemask() {
  return cinch_emulated_active_mask(0);
}
