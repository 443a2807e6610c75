// reduce.h: reductions in the language's order. Needs launch.h and storage.h.
//
// An Item is a scalar or an emitted tuple. `join(a, b)` joins b behind a. Joining with `empty`
// returns the other side: `empty` is the identity of a builtin operation, or a tuple whose `has` is
// false. So missing elements keep their place and take no part.

namespace cinch {

// Adds x if `holds`, by one instruction with a predicate. Compilers would make two.
CINCH_FN void add_where(bool holds, f32& sum, f32 x) {
#if defined(CINCH_LANG_PORTABLE_ONLY)
  if (holds) sum = lang::add(sum, x);
#else
  asm("{.reg .pred holds;\n"
      "setp.ne.u32 holds, %2, 0;\n"
      "@holds add.rn.f32 %0, %0, %1;}"
      : "+f"(sum)
      : "f"(x), "r"(u32(holds)));
#endif
}

// `first` or `second`. With ?: compilers choose between the addresses of tuples, which then lie in
// memory.
template <class Item>
CINCH_FN Item chosen(bool is_first, const Item& first, const Item& second) {
  Item item = second;
  if (is_first) item = first;
  return item;
}

// Joins the items of two lanes that differ in one bit of their number. The lane without the bit
// comes first. Both get the result.
template <class Item, class Join>
CINCH_FN Item join_across(Item own, Item other, u32 bit, Join join) {
  const bool is_second = (lane_index() & bit) != 0u;
  return join(chosen(is_second, other, own), chosen(is_second, own, other));
}

// Column j takes in column j + 64, j + 32, … j + 1. Columns that are 32 apart are eight lanes
// apart. Lanes divide the columns among them, so eight shuffles are enough: after the first step,
// lanes 0 to 15 have columns 4l and 4l + 1, the others 4l + 2 and 4l + 3; after the second step
// each lane has one. All lanes get the result. `Lanes` share a row, at most 32; missing columns
// take no part.
template <u32 Lanes, class Item, class Join>
CINCH_FN Item join_columns(const Item (&columns)[4], Join join) {
  if constexpr (Lanes < 32u) {
    Item x[4];
    CINCH_EACH x[c] = columns[c];
#pragma unroll
    for (u32 bit = Lanes / 2u; bit >= 1u; bit /= 2u) {
      CINCH_EACH x[c] = join_across(x[c], lane_xor(x[c], bit), bit, join);
    }
    return join(join(x[0], x[2]), join(x[1], x[3]));
  }
  const bool has_late = (lane_index() & 16u) != 0u, has_odd = (lane_index() & 8u) != 0u;
  Item pair[2];
#pragma unroll
  for (u32 c = 0; c < 2u; ++c) {
    const Item early = columns[c], late = columns[c + 2u];
    const Item kept = chosen(has_late, late, early), given = chosen(has_late, early, late);
    pair[c] = join_across(kept, lane_xor(given, 16u), 16u, join);
  }
  const Item given = chosen(has_odd, pair[0], pair[1]);
  Item x = join_across(chosen(has_odd, pair[1], pair[0]), lane_xor(given, 8u), 8u, join);
  constexpr u32 kBits[] = {4u, 2u, 1u, 16u, 8u};
#pragma unroll
  for (u32 i = 0; i < 5u; ++i) x = join_across(x, lane_xor(x, kBits[i]), kBits[i], join);
  return x;
}

// The same for items that join in any order. Each lane has joined its own items already.
template <u32 Lanes, class Item, class Join>
CINCH_FN Item join_lanes(Item x, Join join) {
#pragma unroll
  for (u32 bit = Lanes / 2u; bit >= 1u; bit /= 2) x = join(x, lane_xor(x, bit));
  return x;
}

// The same for sums of 32 bits, for which devices from sm_80 on have an instruction.
template <u32 Lanes, class T>
CINCH_FN T sum_lanes(T x) {
#if !defined(CINCH_LANG_PORTABLE_ONLY) && __CUDA_ARCH__ >= 800
  if constexpr (Lanes == 32u) return T(__reduce_add_sync(kAllLanes, u32(x)));
#endif
  return join_lanes<Lanes>(x, [](T a, T b) { return lang::add(a, b); });
}

// join_columns as a function of its own, which is called once for many elements. Joins that capture
// something would make a function for each call anyway.
template <class Item>
struct Columns {
  Item at[4];
};
template <class Item, class Join>
static __device__ __noinline__ Item join_few(Columns<Item> columns, Join join) {
  return join_columns<32u>(columns.at, join);
}
template <class Item, class Join>
CINCH_FN Item join_columns_apart(const Item (&columns)[4], Join join) {
  if constexpr (__is_empty(Join)) {
    return join_few(Columns<Item>{{columns[0], columns[1], columns[2], columns[3]}}, join);
  } else {
    return join_columns<32u>(columns, join);
  }
}

// The results of the tiles of a group longer than one tile, reduced by the same rule as they
// arrive, level by level: 1024 results of a level make one of the next. All lanes of the warp hold
// the same results; lane l keeps columns 4l … 4l + 3 of each level. Levels: 0 for groups of up to
// 1024 elements, 1 up to 2^20, 3 for any.
template <class Item, int Levels>
struct TileResults {
  static constexpr int kKept = Levels > 0 ? Levels : 1;
  Item columns[kKept][4];
  u32 count[kKept];
  Item handed;  // the result that last went up a level

  __device__ __forceinline__ void clear(Item empty) {
    handed = empty;
#pragma unroll
    for (int level = 0; level < kKept; ++level) {
      fill_columns(columns[level], empty);
      count[level] = 0;
    }
  }

  // Takes the next tile's result.
  template <class Join>
  __device__ __forceinline__ void take(Item result, Item empty, Join join) {
    handed = result;
    put(0, empty, join);
  }

  // The group's result. `empty` if there was no tile.
  template <class Join>
  __device__ __forceinline__ Item finish(Item empty, Join join) {
#pragma unroll 1
    for (int level = 0; level < Levels; ++level) {
      Item kept[4];
      const u32 num = take_out(level, kept);
      if (num % kTileElems != 0u) {
        handed = join_columns_apart(kept, join);
        put(level + 1, empty, join);
      }
      if (num <= kTileElems) break;
    }
    return handed;
  }

 private:
  // Finds levels by comparisons, which is more code: an array with a variable index would be in
  // memory.
#if defined(CINCH_QUICK)
  __device__ __forceinline__ u32 take_out(int level, Item (&kept)[4]) const {
    CINCH_EACH kept[c] = columns[level][c];
    return count[level];
  }
  __device__ __forceinline__ void put_back(int level, const Item (&kept)[4], u32 num) {
    CINCH_EACH columns[level][c] = kept[c];
    count[level] = num;
  }
#else
  __device__ __forceinline__ u32 take_out(int level, Item (&kept)[4]) const {
    u32 num = count[0];
    CINCH_EACH kept[c] = columns[0][c];
#pragma unroll
    for (int i = 1; i < kKept; ++i) {
      if (i != level) continue;
      num = count[i];
      CINCH_EACH kept[c] = columns[i][c];
    }
    return num;
  }
  __device__ __forceinline__ void put_back(int level, const Item (&kept)[4], u32 num) {
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      if (i != level) continue;
      count[i] = num;
      CINCH_EACH columns[i][c] = kept[c];
    }
  }
#endif

  // Puts a result into a level, and the result of a full level into the next one. The levels are
  // turns of a loop, not copies of its body: this runs once for a tile, so small code is better.
  template <class Join>
  __device__ __forceinline__ void put(int first_level, Item empty, Join join) {
#pragma unroll 1
    for (int level = first_level; level < Levels; ++level) {
      Item kept[4];
      const u32 num = take_out(level, kept);
      const u32 place = num % kTileElems;
      const u32 column = place % kRowElems;
      CINCH_EACH {
        if (column == 4u * lane_index() + c) kept[c] = join(kept[c], handed);
      }
      const bool is_full = place + 1u == kTileElems;
      if (is_full) {
        handed = join_columns_apart(kept, join);
        fill_columns(kept, empty);
      }
      put_back(level, kept, num + 1u);
      if (!is_full) return;
    }
  }
};

// The same for items that join in any order, for groups longer than one tile.
template <class Item>
struct JoinedResults {
  Item joined;

  __device__ __forceinline__ void clear(Item empty) { joined = empty; }
  template <class Join>
  __device__ __forceinline__ void take(Item result, Item, Join join) {
    joined = join(joined, result);
  }
  template <class Join>
  __device__ __forceinline__ Item finish(Item, Join) {
    return joined;
  }
};

// Gives the results of one tile per warp, tile `first_tile` + warp, to every warp in the order of
// tiles. `shared` holds one item per warp. All threads of the team must call it.
template <u32 Warps, class Results, class Item, class Join>
CINCH_FN void take_round(Team<Warps> team, Results& results, Item result, u64 first_tile,
                         u64 num_tiles, Item* shared, Item empty, Join join) {
  if constexpr (Warps == 1) {
    results.take(result, empty, join);
  } else {
    if (lane_index() == 0u) shared[warp_index()] = result;
    team.sync();
    for (u32 warp = 0; warp < Warps && first_tile + warp < num_tiles; ++warp) {
      results.take(shared[warp], empty, join);
    }
    team.sync();
  }
}

// A step's part of a reduction of stored partials, by its `value` (GpuFold of
// runtime/image/kernel_abi.h). A step that folds runs in many blocks. It stores the result of each
// tile of 1024 partials at the tile's first place; no other warp reads that tile. The step that
// finishes reads these results instead of all partials. The bits are the same: 1024 results of a
// level make one of the next, place by place, whether they come one by one (TileResults) or as a
// tile from memory. A level with a single result passes it on unchanged, because only `empty` joins
// it.
struct Folding {
  bool folds, is_folded;
  u32 block, num_blocks;
};
CINCH_FN Folding folding_of(const GpuStep& step, Place place) {
  return {step.value == i64(GpuFold::Folds), step.value == i64(GpuFold::IsFolded), place.block,
          place.num_blocks};
}
// For reduction `index` of the `count` that the kernel does. Each begins at another block, so
// several are folded at the same time.
CINCH_FN Folding folding_at(Folding all, u32 index, u32 count) {
  const u32 first = u32(u64(index) * all.num_blocks / count);
  const u32 block = all.block + all.num_blocks - first;
  return {all.folds, all.is_folded, block < all.num_blocks ? block : block - all.num_blocks,
          all.num_blocks};
}

// The ordered reduction of `count` stored partials by a whole block, or its fold by many blocks.
// load(i) returns an item, and store(i, item) stores one. The returned item of a fold has no
// meaning.
template <u32 Warps, class Item, class Load, class Store, class Join>
CINCH_FN Item reduce_stored(Team<Warps> team, Folding folding, u64 count, Item* shared, Item empty,
                            Load load, Store store, Join join) {
  TileResults<Item, 3> results;
  results.clear(empty);
  const u32 level = folding.is_folded ? 10u : 0u;  // items are 2^level apart
  const u64 num_items = (count + (1u << level) - 1u) >> level;
  const u64 num_tiles = (num_items + kTileElems - 1) / kTileElems;
  const u64 apart = u64(folding.num_blocks) * Warps;
  for (u64 first = u64(folding.block) * Warps; first < num_tiles; first += apart) {
    const u64 begin = (first + (Warps == 1 ? 0u : warp_index())) * kTileElems;
    const u32 len = u32(at_most(kTileElems, i64(num_items - begin)));
    Item columns[4];
    fill_columns(columns, empty);
#pragma unroll(sizeof(Item) > 8u ? 1 : 4)
    for (u32 row = 0; row < 8u; ++row) {
      const u32 place = row * kRowElems + 4u * lane_index();
      CINCH_EACH {
        if (place + c >= len) continue;
        columns[c] = join(columns[c], load((begin << level) + ((place + c) << level)));
      }
    }
    const Item result = join_columns_apart(columns, join);
    if (folding.folds) {
      if (lane_index() == 0u && len != 0u) store(begin, result);
    } else {
      take_round(team, results, result, first, num_tiles, shared, empty, join);
    }
  }
  return results.finish(empty, join);
}

// The same for items that join in any order: of a tile if it folds, else of all.
template <u32 Warps, class Item, class Load, class Store, class Join>
CINCH_FN Item join_stored(Team<Warps> team, Folding folding, u64 count, Item* shared, Item empty,
                          Load load, Store store, Join join) {
  const u32 level = folding.is_folded ? 10u : 0u;
  const u64 num_items = (count + (1u << level) - 1u) >> level;
  const u64 apart = u64(folding.num_blocks) * Warps * kTileElems;
  Item joined = empty;
  for (u64 begin = (u64(folding.block) * Warps + (Warps == 1u ? 0u : warp_index())) * kTileElems;
       begin < num_items; begin += apart) {
    const u64 end = begin + at_most(kTileElems, i64(num_items - begin));
    if (folding.folds) joined = empty;
#pragma unroll 4
    for (u64 i = begin + lane_index(); i < end; i += 32u) joined = join(joined, load(i << level));
    if (folding.folds) {
      const Item result = join_lanes<32u>(joined, join);
      if (lane_index() == 0u) store(begin, result);
    }
  }
  joined = join_lanes<32u>(joined, join);
  if constexpr (Warps > 1u) {
    if (lane_index() == 0u) shared[warp_index()] = joined;
    team.sync();
    joined = empty;
#pragma unroll 1
    for (u32 warp = 0; warp < Warps; ++warp) joined = join(joined, shared[warp]);
    team.sync();
  }
  return joined;
}

// The same for scalars in a buffer. Compiled once for all kernels that reduce alike.
template <class S, u32 Warps, class Join>
static __device__ __noinline__ typename S::Compute reduce_partials(
    Team<Warps> team, Folding folding, u64 count, u8* partials, typename S::Compute* shared,
    typename S::Compute empty, Join join) {
  const auto load = [&](u64 i) { return load_one<S>(partials, i64(i)); };
  const auto store = [&](u64 i, typename S::Compute x) { store_one<S>(partials, i64(i), x); };
  if constexpr (Join::kInAnyOrder) {
    return join_stored(team, folding, count, shared, empty, load, store, join);
  } else {
    return reduce_stored(team, folding, count, shared, empty, load, store, join);
  }
}

}  // namespace cinch
