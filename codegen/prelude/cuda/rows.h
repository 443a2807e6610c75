// rows.h: transforms of a row that a warp shares: butterflies, products with a matrix, marks of the
// largest. Needs reduce.h.

namespace cinch {

// In place. Shuffles serve distances below 32; at other distances both elements are in a lane's
// registers.
template <u32 Len, class E>
CINCH_FN void butterflies_of_row(E* row) {
  constexpr u32 kEach = Len < 32u ? 1u : Len / 32u;
  const u32 lane = lane_index();
  const bool is_there = lane < Len;
  E x[kEach];
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) x[i] = is_there ? row[32u * i + lane] : E(0);
#pragma unroll
  for (u32 distance = 1; distance < 32u && distance < Len; distance *= 2) {
    const bool is_left = (lane & distance) == 0u;
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      const E other = lane_xor(x[i], distance);
      x[i] = is_left ? lang::add(x[i], other) : lang::sub(other, x[i]);
    }
  }
#pragma unroll
  for (u32 distance = 1; distance < kEach; distance *= 2) {
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if ((i & distance) != 0u) continue;
      const E a = x[i], b = x[i + distance];
      x[i] = lang::add(a, b);
      x[i + distance] = lang::sub(a, b);
    }
  }
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) {
    if (is_there) row[32u * i + lane] = x[i];
  }
}

// How many keys of the warp are at least a number.
template <u32 Each>
CINCH_FN u32 count_reaching(const u32 (&keys)[Each], u32 least) {
  u32 num = 0;
#pragma unroll
  for (u32 i = 0; i < Each; ++i) num += u32(keys[i] >= least);
  return sum_lanes<32u>(num);
}

// In place: 1 for the k largest keys, 0 for the others. The first of equal keys wins. Finds the
// k-th largest key bit by bit from the top.
template <u32 Len>
CINCH_FN void mark_largest_of_row(u32* row, u32 k) {
  constexpr u32 kEach = (Len + 31u) / 32u;
  const u32 lane = lane_index();
  u32 x[kEach];
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) x[i] = 32u * i + lane < Len ? row[32u * i + lane] : 0u;
  u32 least = 0;
#pragma unroll 1
  for (u32 bit = 1u << 31; bit != 0u; bit >>= 1) {
    const u32 tried = least | bit;
    if (count_reaching(x, tried) >= k) least = tried;
  }
  const u32 need = k - (least == ~0u ? 0u : count_reaching(x, least + 1u));
  u32 before = 0;
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) {
    const bool is_there = 32u * i + lane < Len, is_equal = is_there && x[i] == least;
    const u32 equals = __ballot_sync(kAllLanes, is_equal);
    const u32 rank = before + u32(__popc(equals & ((1u << lane) - 1u)));
    before += u32(__popc(equals));
    if (is_there) row[32u * i + lane] = u32(x[i] > least || (is_equal && rank < need));
  }
}

// The value of column `Column` of a tile after columns at `Distance` and more were joined, where
// product(k) is element k.
template <u32 Len, u32 Column, u32 Distance, class Product>
CINCH_FN auto column_of_products(const Product& product) {
  constexpr u32 kColumns = 128;
  if constexpr (Distance == kColumns) {
    auto sum = product(Column);
    if constexpr (Column + kColumns < Len) {
#pragma unroll 1
      for (u32 k = Column + kColumns; k < Len; k += kColumns) sum = lang::add(sum, product(k));
    }
    return sum;
  } else {
    const auto sum = column_of_products<Len, Column, 2 * Distance>(product);
    if constexpr (Column + Distance < (Len < kColumns ? Len : kColumns)) {
      return lang::add(sum, column_of_products<Len, Column + Distance, 2 * Distance>(product));
    } else {
      return sum;
    }
  }
}

// Multiplies the row by a matrix of Len columns, stored row by row.
template <u32 Len, class S, class E>
CINCH_FN void multiply_row(const E* row, const u8* matrix, E* to) {
#pragma unroll 1
  for (u32 j = lane_index(); j < Len; j += 32u) {
    const auto product = [&](u32 k) {
      return lang::mul(row[k], load_one<S>(matrix, i64(k * Len + j)));
    };
    to[j] = lang::add(E(0), column_of_products<Len, 0, 1>(product));
  }
}

}  // namespace cinch
