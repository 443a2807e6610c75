// The one order of float reductions and scans (language.md, "The same bits everywhere"), in plain
// code: the oracle to which all targets are compared. Slow on purpose; allocates.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace cinch {

inline constexpr std::size_t kTileRows = 8;
inline constexpr std::size_t kTileColumns = 128;
inline constexpr std::size_t kTileElems = kTileRows * kTileColumns;

/// a op b, either of which may be missing: a missing element is skipped.
template <typename T, typename Op>
std::optional<T> join_present(std::optional<T> a, std::optional<T> b, Op&& op) {
  if (!a) return b;
  if (!b) return a;
  return op(std::move(*a), std::move(*b));
}

/// One tile of up to 1024 places; `at(i)` returns the element or nothing. Each column adds its rows
/// in order, then column j adds column j + 64, j + 32, … j + 1.
template <typename T, typename At, typename Op>
std::optional<T> reduce_tile(std::size_t num_elems, At&& at, Op&& op) {
  std::array<std::optional<T>, kTileColumns> column;
  for (std::size_t i = 0; i < num_elems; ++i) {
    std::optional<T>& c = column[i % kTileColumns];
    c = join_present<T>(std::move(c), at(i), op);
  }
  for (std::size_t distance = kTileColumns / 2; distance >= 1; distance /= 2) {
    for (std::size_t j = 0; j < distance; ++j) {
      column[j] = join_present<T>(std::move(column[j]), std::move(column[j + distance]), op);
    }
  }
  return column[0];
}

/// The result of each tile of `num_elems` places.
template <typename T, typename At, typename Op>
std::vector<std::optional<T>> reduce_tiles(std::size_t num_elems, At&& at, Op&& op) {
  std::vector<std::optional<T>> results((num_elems + kTileElems - 1) / kTileElems);
  for (std::size_t t = 0; t < results.size(); ++t) {
    const std::size_t begin = t * kTileElems;
    const std::size_t size = std::min(kTileElems, num_elems - begin);
    results[t] = reduce_tile<T>(size, [&](std::size_t i) { return at(begin + i); }, op);
  }
  return results;
}

/// The reduction of `num_elems` places; nothing if no element is present. `at(i)` returns
/// std::optional<T> (nothing: masked out); `op(a, b)` joins with a on the left. An `init` joins the
/// result once, on the left: op(init, result).
template <typename T, typename At, typename Op>
std::optional<T> ordered_reduce(std::size_t num_elems, At&& at, Op&& op) {
  if (num_elems == 0) return std::nullopt;
  std::vector<std::optional<T>> results = reduce_tiles<T>(num_elems, at, op);
  while (results.size() > 1) {
    const std::vector<std::optional<T>> parts = std::move(results);
    results = reduce_tiles<T>(parts.size(), [&](std::size_t i) { return parts[i]; }, op);
  }
  return results[0];
}

/// The inclusive scan of x, in place. Within a tile of 1024, for d = 1, 2, 4 … 512 each element
/// joins the one d before it (all at once). The tile ends are scanned by the same rule, and join
/// the elements of the next tile on the left.
///
/// With an init: element i is op(init, scan[i]); exclusive: op(init, scan[i - 1]), and init for
/// i = 0.
template <typename T, typename Op>
void ordered_scan(std::vector<T>& x, Op&& op) {
  const std::size_t num_tiles = (x.size() + kTileElems - 1) / kTileElems;
  for (std::size_t t = 0; t < num_tiles; ++t) {
    const std::size_t begin = t * kTileElems;
    const std::size_t end = std::min(begin + kTileElems, x.size());
    for (std::size_t d = 1; d < kTileElems; d *= 2) {
      for (std::size_t i = end; i-- > begin + d;) x[i] = op(x[i - d], x[i]);
    }
  }
  if (num_tiles <= 1) return;
  std::vector<T> ends(num_tiles - 1);
  for (std::size_t t = 0; t + 1 < num_tiles; ++t) ends[t] = x[(t + 1) * kTileElems - 1];
  ordered_scan(ends, op);
  for (std::size_t i = kTileElems; i < x.size(); ++i) {
    x[i] = op(ends[i / kTileElems - 1], x[i]);
  }
}

}  // namespace cinch
