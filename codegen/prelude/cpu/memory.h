// memory.h: whole elements of buffers, unaligned, never a byte beyond the places asked for. S is
// the element as stored (u8 … u64, i8 … i64, f32, f64; narrow floats as their bits). Needs
// vectors.h.

namespace cinch {

template <class S>
CINCH_CALL S load_one(const u8* buffer, i64 place) {
  S x;
  __builtin_memcpy(&x, buffer + u64(place) * sizeof(S), sizeof(S));
  return x;
}
template <class S>
CINCH_CALL void store_one(u8* buffer, i64 place, S x) {
  __builtin_memcpy(buffer + u64(place) * sizeof(S), &x, sizeof(S));
}

// Places first … first + count - 1 (count <= W); lanes beyond are 0.
template <class S>
CINCH_CALL Lanes<S> load_lanes(const u8* buffer, i64 first, u32 count) {
  const u8* from = buffer + u64(first) * sizeof(S);
  Lanes<S> x;
  if (__builtin_expect(count == W, 1)) {
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  S part[W] = {};
#pragma clang loop unroll(disable) vectorize(disable)
  for (u32 i = 0; i < count; ++i) __builtin_memcpy(&part[i], from + i * sizeof(S), sizeof(S));
  __builtin_memcpy(&x, part, sizeof x);
  return x;
}
template <class S>
CINCH_CALL void store_lanes(u8* buffer, i64 first, u32 count, Lanes<S> x) {
  u8* to = buffer + u64(first) * sizeof(S);
  if (__builtin_expect(count == W, 1)) {
    __builtin_memcpy(to, &x, sizeof x);
    return;
  }
  S part[W];
  __builtin_memcpy(part, &x, sizeof x);
#pragma clang loop unroll(disable) vectorize(disable)
  for (u32 i = 0; i < count; ++i) __builtin_memcpy(to + i * sizeof(S), &part[i], sizeof(S));
}

// buffer[index] where `live`, else 0; nothing else is touched.
template <class S, class I>
CINCH_CALL Lanes<S> gather_lanes(const u8* buffer, I index, Truth live) {
  const u32 bits = bits_of_truth(live);
  Lanes<S> x = Lanes<S>(S(0));
  if (__builtin_expect(bits == (1u << W) - 1, 1)) {
#pragma unroll
    for (int i = 0; i < W; ++i) x[i] = load_one<S>(buffer, i64(index[i]));
    return x;
  }
  for (u32 rest = bits; rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    x[i] = load_one<S>(buffer, i64(index[i]));
  }
  return x;
}
// buffer[index] = x where `live`, lanes in order.
template <class S, class I>
CINCH_CALL void scatter_lanes(u8* buffer, I index, Lanes<S> x, Truth live) {
  for (u32 rest = bits_of_truth(live); rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    store_one<S>(buffer, i64(index[i]), x[i]);
  }
}
// buffer[index] = buffer[index] + x where `live`, lanes in order.
template <class S, class E, class I, class Add>
CINCH_CALL void add_lanes(u8* buffer, I index, Lanes<E> x, Truth live, const Add& add) {
  for (u32 rest = bits_of_truth(live); rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    store_one<S>(buffer, i64(index[i]), add(load_one<S>(buffer, i64(index[i])), E(x[i])));
  }
}

// Elements of a local array on the stack, by vectors.
template <class E>
CINCH_CALL Lanes<E> local_lanes(const E* from) {
  Lanes<E> x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
template <class E>
CINCH_CALL void set_local_lanes(E* to, Lanes<E> x) {
  __builtin_memcpy(to, &x, sizeof x);
}

}  // namespace cinch
