// expand_selection: top_k and kth_largest of a whole array by radix selection. The key of the k-th
// largest is found digit by digit from the top, each from a histogram of the elements that share
// the digits found so far; top_k then keeps the larger keys and, of the equal ones, the first.
//
//   before:  %1: [u32; k] = top_k %0 {size=k, axis=all}
//   after:   %2 = bitcast %0, …                               keys (selection.h)
//            %3 = for_loop …                                  histogram and digit, once each
//            %4 = map.gt %2, key | map.eq %2, key & running count < need
//            %5: [u32; found], %6 = nonzero %4 {limit=k}
//            %1: [u32; k] = reshape %5 {proved}
//
// A long vector is swept once instead of once for each digit (SampledTopK). A small sample gives
// two keys between which the k-th largest lies almost surely. The elements between them are listed,
// and the list is searched. If the guess was wrong, or the list too short, everything is searched
// after all, so that the result is always exact.
//
// Along rows (axis 1) the largest of each row are found by counting (selection.h); long rows,
// and rows of unknown length, are sorted by their keys. An argsort along columns (axis 0) becomes
// one along the rows of the transpose.
#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "compiler/ir/rewriter.h"
#include "compiler/lower/prelude.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/selection.h"

namespace cinch::passes {
namespace {

using ir::ValueId;
using lower::call_prelude;

// Number of sampled elements: one of kSampleShare, and at most kSampleMost.
constexpr std::int64_t kSampleShare = 16;
constexpr std::int64_t kSampleMost = 16384;
// Of the sample, the search reads only the first digits of keys. The two keys need not be exact,
// only below and above.
constexpr int kSampleBits = 20;

// The region of each op and the op that found each count, among the ops offered so far.
class SeenCounts {
 public:
  void see(const ir::Function& function, ir::RegionId region, const ir::Op& op) {
    for (ir::RegionId held : ir::held_regions(function, op)) around_[held] = region;
    if (op.kind == ir::OpKind::nonzero) found_[op.attrs.index].push_back({region, op.results[1]});
  }

  // How many elements a selection kept: the last selection with this count that has run at this
  // point, since filters by one mask share the count across branches. A payload's count was read
  // with it.
  ValueId count_of(ir::Builder& b, std::uint32_t count) const {
    const auto found = found_.find(count);
    if (found == found_.end()) return b.count_value(count);
    for (std::optional<ir::RegionId> region = b.region(); region; region = around(*region)) {
      for (const Found& each : std::views::reverse(found->second)) {
        if (each.region == *region) return each.num;
      }
    }
    return b.count_value(count);
  }

 private:
  struct Found {
    ir::RegionId region;
    ValueId num;
  };

  std::optional<ir::RegionId> around(ir::RegionId region) const {
    const auto at = around_.find(region);
    return at == around_.end() ? std::nullopt : std::optional(at->second);
  }

  std::unordered_map<ir::RegionId, ir::RegionId> around_;
  std::unordered_map<std::uint32_t, std::vector<Found>> found_;
};

ValueId wanted(ir::Builder& b, HostExprId k, const SeenCounts& seen) {
  return b.size_scalar(k, kU32, [&](std::uint32_t count) { return seen.count_of(b, count); });
}

// Is this a vector that is too long to sweep often, and does the host know its size and k?
bool can_sample(ir::Builder& b, HostExprId size, HostExprId k) {
  if (b.exprs().has_count(size) || b.exprs().has_count(k)) return false;
  const auto constant = ir::constant_size(b.exprs(), size);
  return !constant || *constant > 4 * kSampleMost;
}

ValueId top_k_by_sample(ir::Builder& b, const SelectionKeys& keys, HostExprId k) {
  HostExprPool& e = b.exprs();
  const HostExprId share = e.ceil_div(b.type(keys.keys).dims[0], e.const_int(kSampleShare));
  const HostExprId num = e.min(share, e.const_int(kSampleMost));
  const int dropped = std::max(keys.bits - kSampleBits, 0);
  const ValueId sample =
      call_prelude(b, "sample_of_keys", keys.key_type, {keys.keys, num, dropped})[0];
  return call_prelude(b, "largest_by_sample", keys.key_type,
                      {keys.keys, b.keep(sample), keys.bits, dropped, k})[0];
}

ValueId top_k(ir::Builder& b, ValueId values, HostExprId k, const SeenCounts& seen) {
  const SelectionKeys keys = make_keys(b, values);
  if (can_sample(b, b.type(values).dims[0], k)) return top_k_by_sample(b, keys, k);
  return call_prelude(b, "largest_places", keys.key_type,
                      {keys.keys, keys.bits, k, wanted(b, k, seen)})[0];
}

// Parts into which a long row is cut: the largest of the row are among the largest of its parts.
struct RowParts {
  std::int64_t columns = 0;  // of a part
  std::int64_t num = 0;
};

// None if k is not known, no part fits a tile, or the largest of all parts do not fit a tile.
std::optional<RowParts> parts_of_rows(ir::Builder& b, const SelectionKeys& keys, HostExprId k) {
  const auto cols = ir::constant_size(b.exprs(), b.type(keys.keys).dims[1]);
  const auto wanted = ir::constant_size(b.exprs(), k);
  if (!cols || !wanted || *wanted < 1) return std::nullopt;
  for (std::int64_t part = ir::kMostMarkedColumns; part >= 2 * *wanted; --part) {
    if (*cols % part != 0) continue;
    const RowParts parts{.columns = part, .num = *cols / part};
    const bool fits = parts.num * *wanted <= ir::kMostMarkedColumns;
    return fits ? std::optional(parts) : std::nullopt;
  }
  return std::nullopt;
}

// Marks the largest of each part, and then the largest of these. They are in the order of their
// columns, so of equal keys the first ones are taken.
ValueId top_k_by_parts(ir::Builder& b, const SelectionKeys& keys, const RowParts& parts,
                       HostExprId k, const SeenCounts& seen) {
  HostExprPool& e = b.exprs();
  const HostExprId rows = b.type(keys.keys).dims[0];
  const HostExprId num = e.const_int(parts.num), columns = e.const_int(parts.columns);
  const auto matrix = [&](HostExprId height, HostExprId width) {
    return ir::matrix_type(kU32, height, width);
  };
  const ValueId cut = b.reshape(keys.keys, matrix(e.mul(rows, num), columns), true);
  const ValueId found = b.keep(b.list_marked(b.mark_largest(cut, wanted(b, k, seen)), k));
  const HostExprId found_columns = e.mul(num, k);
  const ValueId candidates =
      b.reshape(b.gather_along(cut, found, 1), matrix(rows, found_columns), true);
  const ValueId first_columns =
      b.map(ScalarOp::mul,
            b.map(ScalarOp::mod, b.iota(e.mul(rows, num)), b.constant_int(kU32, parts.num)),
            b.constant_int(kU32, parts.columns));
  const ValueId all =
      b.reshape(b.map(ScalarOp::add, found,
                      b.reshape(first_columns, matrix(e.mul(rows, num), e.const_int(1)), true)),
                matrix(rows, found_columns), true);
  const ValueId best = b.list_marked(b.mark_largest(b.keep(candidates), wanted(b, k, seen)), k);
  return b.gather_along(all, best, 1);
}

// Rows of constant length are not sorted: their largest are found by counting, and listed as places
// of the whole matrix.
ValueId top_k_of_rows(ir::Builder& b, ValueId values, HostExprId k, const SeenCounts& seen) {
  const SelectionKeys keys = make_keys(b, values);
  if (!can_count_rows(b, keys))
    return call_prelude(b, "largest_columns", keys.key_type, {keys.keys, k})[0];
  if (fits_a_tile(b, keys)) return b.list_marked(b.mark_largest(keys.keys, wanted(b, k, seen)), k);
  if (const auto parts = parts_of_rows(b, keys, k)) return top_k_by_parts(b, keys, *parts, k, seen);
  const ValueId mask = b.keep(mask_of_largest_in_rows(b, keys, wanted(b, k, seen)));
  return call_prelude(b, "columns_of_marks", kBool, {mask, k})[0];
}

// +inf (the largest integer) if k is 0, else the value.
ValueId or_above_all(ir::Builder& b, ValueId value, HostExprId k, const SeenCounts& seen) {
  const auto constant = ir::constant_size(b.exprs(), k);
  if (constant && *constant > 0) return value;
  const ValueId is_none = b.map(ScalarOp::eq, wanted(b, k, seen), b.constant_int(kU32, 0));
  return b.select(is_none, b.identity(ScalarOp::min, b.dtype(value)), value);
}

ValueId kth_largest(ir::Builder& b, ValueId values, HostExprId k, const SeenCounts& seen) {
  const SelectionKeys keys = make_keys(b, values);
  const ValueId key =
      call_prelude(b, "key_of_rank", keys.key_type, {keys.keys, keys.bits, wanted(b, k, seen)})[0];
  const ValueId value = value_of_key(b, keys, key, b.dtype(values));
  return or_above_all(b, value, k, seen);
}

ValueId kth_largest_of_rows(ir::Builder& b, ValueId values, HostExprId k, const SeenCounts& seen) {
  const SelectionKeys keys = make_keys(b, values);
  const ValueId key = can_count_rows(b, keys) ? ranked_keys_of_rows(b, keys, wanted(b, k, seen))
                                              : call_prelude(b, "keys_of_rank_in_rows",
                                                             keys.key_type, {keys.keys, k})[0];
  return or_above_all(b, value_of_key(b, keys, key, b.dtype(values)), k, seen);
}

}  // namespace

void expand_selection(ir::Program& program, PassContext& context) {
  std::unordered_map<const ir::Function*, SeenCounts> all_seen;
  rewrite_all(
      program, context, [&](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
        SeenCounts& seen = all_seen[&b.function()];
        seen.see(b.function(), b.region(), op);
        if (op.kind == ir::OpKind::argsort && op.attrs.axis == 0) {
          const ValueId order = b.argsort(b.transpose(op.operands[0]), op.attrs.descending, 1);
          return ir::ValueIds{b.transpose(order)};
        }
        const bool is_top = op.kind == ir::OpKind::top_k;
        if (!is_top && op.kind != ir::OpKind::kth_largest) return std::nullopt;
        const ValueId x = op.operands[0];
        const HostExprId k = op.attrs.size;
        if (op.attrs.axis == ir::kAll) {
          return ir::ValueIds{is_top ? top_k(b, x, k, seen) : kth_largest(b, x, k, seen)};
        }
        return ir::ValueIds{is_top ? top_k_of_rows(b, x, k, seen)
                                   : kth_largest_of_rows(b, x, k, seen)};
      });
}

}  // namespace cinch::passes
