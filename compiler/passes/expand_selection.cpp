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
#include <optional>
#include <ranges>
#include <unordered_map>
#include <vector>

#include "compiler/ir/rewriter.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/selection.h"

namespace cinch::passes {
namespace {

using ir::ValueId;

// The places of each row sorted by key, the largest first; ties by the lower index.
ValueId order_of_rows(ir::Builder& b, ValueId values) {
  return b.argsort(make_keys(b, values).keys, /*descending=*/true, 1);
}

ValueId order_of_columns(ir::Builder& b, ValueId values, bool descending) {
  return b.transpose(b.argsort(b.transpose(values), descending, 1));
}

// [rows, k]: in each row 0, 1, … k - 1.
ValueId columns(ir::Builder& b, ValueId values, HostExprId k) {
  const ir::Type row = ir::matrix_type(kU32, b.exprs().const_int(1), k);
  return b.fill(b.reshape(b.iota(k), row), ir::matrix_type(kU32, b.type(values).dims[0], k));
}

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

ValueId top_k(ir::Builder& b, ValueId values, HostExprId k, const SeenCounts& seen) {
  const SelectionKeys keys = make_keys(b, values);
  if (can_sample(b, keys, k)) return sampled_top_k(b, keys, k);
  const ValueId need = wanted(b, k, seen);
  return first_of(b, mask_of_largest(b, keys.keys, find_keys(b, keys, {need})[0]), k);
}

// Rows of constant length are not sorted: their largest are found by counting, and listed as places
// of the whole matrix.
ValueId counted_top_k_of_rows(ir::Builder& b, const SelectionKeys& keys, HostExprId k,
                              const SeenCounts& seen) {
  if (fits_a_tile(b, keys)) return b.list_marked(b.mark_largest(keys.keys, wanted(b, k, seen)), k);
  const ir::Type matrix = b.type(keys.keys);
  const HostExprId cols = matrix.dims[1];
  const ValueId mask = mask_of_largest_in_rows(b, keys, wanted(b, k, seen));
  const HostExprId cells = b.exprs().mul(matrix.dims[0], cols);
  const ValueId place = first_of(b, b.reshape(b.keep(mask), ir::vector_type(kBool, cells)),
                                 b.exprs().mul(matrix.dims[0], k));
  const ValueId column = b.map(ScalarOp::mod, place, b.host_size(cols, kU32));
  return b.reshape(column, ir::matrix_type(kU32, matrix.dims[0], k));
}

ValueId top_k_of_rows(ir::Builder& b, ValueId values, HostExprId k, const SeenCounts& seen) {
  const SelectionKeys keys = make_keys(b, values);
  if (can_count_rows(b, keys)) return counted_top_k_of_rows(b, keys, k, seen);
  const ValueId picked = b.gather_along(order_of_rows(b, values), columns(b, values, k), 1);
  return b.gather_along(picked, b.argsort(picked, false, 1), 1);
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
  const RankedKey found = find_keys(b, keys, {wanted(b, k, seen)})[0];
  const ValueId value = value_of_key(b, keys, found.key, b.dtype(values));
  return or_above_all(b, value, k, seen);
}

ValueId kth_largest_of_rows(ir::Builder& b, ValueId values, HostExprId k, const SeenCounts& seen) {
  const ir::Type column = ir::matrix_type(kU32, b.type(values).dims[0], b.exprs().const_int(1));
  const SelectionKeys keys = make_keys(b, values);
  if (can_count_rows(b, keys)) {
    const ValueId key = ranked_keys_of_rows(b, keys, wanted(b, k, seen));
    return or_above_all(b, value_of_key(b, keys, key, b.dtype(values)), k, seen);
  }
  const ValueId order = b.argsort(keys.keys, /*descending=*/true, 1);
  // The last wanted place; if there is none the first, which is then not used.
  const HostExprId last =
      b.exprs().max(b.exprs().sub(k, b.exprs().const_int(1)), b.exprs().const_int(0));
  const ValueId place = b.gather_along(order, b.fill(wanted(b, last, seen), column), 1);
  const ValueId key = b.gather_along(keys.keys, place, 1);
  return or_above_all(b, value_of_key(b, keys, key, b.dtype(values)), k, seen);
}

}  // namespace

void expand_selection(ir::Program& program, PassContext& context) {
  std::unordered_map<const ir::Function*, SeenCounts> all_seen;
  rewrite_all(program, context, [&](ir::Builder& b, ir::OpId id) -> std::optional<ir::ValueIds> {
    const ir::Op op = b.function().ops[id.index()];
    SeenCounts& seen = all_seen[&b.function()];
    seen.see(b.function(), b.region(), op);
    if (op.kind == ir::OpKind::argsort && op.attrs.axis == 0) {
      return ir::ValueIds{order_of_columns(b, op.operands[0], op.attrs.descending)};
    }
    const bool is_top = op.kind == ir::OpKind::top_k;
    if (!is_top && op.kind != ir::OpKind::kth_largest) return std::nullopt;
    const ValueId x = op.operands[0];
    const HostExprId k = op.attrs.size;
    if (op.attrs.axis == ir::kAll) {
      return ir::ValueIds{is_top ? top_k(b, x, k, seen) : kth_largest(b, x, k, seen)};
    }
    return ir::ValueIds{is_top ? top_k_of_rows(b, x, k, seen) : kth_largest_of_rows(b, x, k, seen)};
  });
}

}  // namespace cinch::passes
