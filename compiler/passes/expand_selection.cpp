// expand_selection: top_k and kth_largest of a whole array by radix selection. The key of the k-th
// largest is found digit by digit from the top, each from a histogram of the elements that share
// the digits found so far; top_k then keeps the larger keys and, of the equal ones, the first.
//
//   before:  %1: [u32; k] = top_k %0 {size=k, axis=all}
//   after:   %2 = bitcast %0, …                               keys (selection_keys.h)
//            %3 = histogram digit(%2)                         … once for each digit
//            %4 = scan %3, %5 = reduce …                      its bin, and how many lie above
//            %6 = map.gt %2, key | map.eq %2, key & running count < need
//            %7: [u32; found], %8 = nonzero %6 {limit=k}
//            %1: [u32; k] = reshape %7 {proved}
//
// Along rows (axis 1) each row is sorted by its keys. An argsort along columns (axis 0) becomes one
// along the rows of the transpose.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite_region.h"
#include "compiler/passes/selection_keys.h"

namespace cinch::passes {
namespace {

using ir::ValueId;

// Bins of one histogram: 2^11 of u32 stay in the fastest memory of every target.
constexpr int kDigitBits = 11;

class RadixSelect {
 public:
  RadixSelect(ir::Builder& builder, ValueId values, HostExprId k)
      : b_(builder), keys_(make_keys(builder, values)) {
    need_ = b_.host_size(k, kU32);
    key_ = b_.constant_int(keys_.key_type, 0);
    for (int left = keys_.bits; left > 0;) {
      const int width = left < kDigitBits ? left : kDigitBits;
      left -= width;
      find_digit(left, width);
    }
  }

  // The key of the k-th largest.
  ValueId key() const { return key_; }
  const SelectionKeys& keys() const { return keys_; }

  // Which elements are the k largest; the lower index wins a tie.
  ValueId mask() {
    const ValueId above = b_.map(ScalarOp::gt, keys_.keys, key_);
    const ValueId equal = b_.map(ScalarOp::eq, keys_.keys, key_);
    const ValueId before =
        b_.scan(ScalarOp::add, b_.convert(equal, kU32), ir::kAll, /*exclusive=*/true);
    const ValueId in_time = b_.map(ScalarOp::lt, before, need_);
    return b_.map(ScalarOp::bit_or, above, b_.map(ScalarOp::bit_and, equal, in_time));
  }

 private:
  ValueId key_constant(std::int64_t value) { return b_.constant_int(keys_.key_type, value); }

  // Digit of `width` bits at `shift`: the highest bin such that it and those above hold at least
  // `need` elements. What lies above it is then no longer needed.
  void find_digit(int shift, int width) {
    const HostExprId bins = b_.exprs().const_int(std::int64_t{1} << width);
    const ValueId counts = count_digits(shift, width, bins);
    const ValueId total = b_.reduce(ScalarOp::add, counts);
    const ValueId below = b_.scan(ScalarOp::add, counts, ir::kAll, /*exclusive=*/true);
    const ValueId from_here = b_.map(ScalarOp::sub, total, below);
    const ValueId is_enough = b_.map(ScalarOp::ge, from_here, need_);
    const ValueId num_enough = b_.reduce(ScalarOp::add, b_.convert(is_enough, kU32));
    const ValueId digit = b_.map(ScalarOp::sub, num_enough, b_.constant_int(kU32, 1));
    const ValueId above =
        b_.map(ScalarOp::sub, b_.gather(from_here, digit), b_.gather(counts, digit));
    need_ = b_.map(ScalarOp::sub, need_, above);
    const ValueId moved = b_.map(ScalarOp::shl, key_, key_constant(width));
    key_ = b_.map(ScalarOp::bit_or, moved, b_.convert(digit, keys_.key_type));
  }

  ValueId count_digits(int shift, int width, HostExprId bins) {
    const ValueId moved = b_.map(ScalarOp::shr, keys_.keys, key_constant(shift));
    const ValueId digit =
        b_.map(ScalarOp::bit_and, moved, key_constant((std::int64_t{1} << width) - 1));
    const bool is_first = shift + width == keys_.bits;
    if (is_first) return b_.histogram(b_.convert(digit, kU32), bins);
    const ValueId upper = b_.map(ScalarOp::shr, keys_.keys, key_constant(shift + width));
    return b_.histogram(b_.convert(digit, kU32), bins, b_.map(ScalarOp::eq, upper, key_));
  }

  ir::Builder& b_;
  SelectionKeys keys_;
  ValueId need_;  // of elements with the digits found so far, how many are among the k largest
  ValueId key_;   // the digits found so far
};

// Sorted places of each row by key, the largest first; ties by the lower index.
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

ValueId top_k(ir::Builder& b, ValueId values, HostExprId k) {
  const ValueId mask = RadixSelect(b, values, k).mask();
  const ir::Builder::Nonzero found = b.nonzero(mask, b.new_count("selected", k), k);
  return b.reshape(found.index, ir::vector_type(kU32, k), /*proved=*/true);
}

ValueId top_k_of_rows(ir::Builder& b, ValueId values, HostExprId k) {
  const ValueId picked = b.gather_along(order_of_rows(b, values), columns(b, values, k), 1);
  return b.gather_along(picked, b.argsort(picked, false, 1), 1);
}

// +inf (the largest integer) where k is 0, else the value.
ValueId or_above_all(ir::Builder& b, ValueId value, HostExprId k) {
  const auto constant = ir::constant_size(b.exprs(), k);
  if (constant && *constant > 0) return value;
  const ValueId is_none = b.map(ScalarOp::eq, b.host_size(k, kU32), b.constant_int(kU32, 0));
  return b.select(is_none, b.identity(ScalarOp::min, b.dtype(value)), value);
}

ValueId kth_largest(ir::Builder& b, ValueId values, HostExprId k) {
  const RadixSelect select(b, values, k);
  const ValueId value = value_of_key(b, select.keys(), select.key(), b.dtype(values));
  return or_above_all(b, value, k);
}

ValueId kth_largest_of_rows(ir::Builder& b, ValueId values, HostExprId k) {
  const ir::Type column = ir::matrix_type(kU32, b.type(values).dims[0], b.exprs().const_int(1));
  const SelectionKeys keys = make_keys(b, values);
  const ValueId order = b.argsort(keys.keys, /*descending=*/true, 1);
  // The last place of those wanted; of none the first, which is not used then.
  const HostExprId last =
      b.exprs().max(b.exprs().sub(k, b.exprs().const_int(1)), b.exprs().const_int(0));
  const ValueId place = b.gather_along(order, b.fill(b.host_size(last, kU32), column), 1);
  const ValueId key = b.gather_along(keys.keys, place, 1);
  return or_above_all(b, value_of_key(b, keys, key, b.dtype(values)), k);
}

}  // namespace

void expand_selection(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [](ir::Builder& b, ir::OpId id) -> std::optional<ir::ValueIds> {
    const ir::Op op = b.function().ops[id.index()];
    if (op.kind == ir::OpKind::argsort && op.attrs.axis == 0) {
      return ir::ValueIds{order_of_columns(b, op.operands[0], op.attrs.descending)};
    }
    const bool is_top = op.kind == ir::OpKind::top_k;
    if (!is_top && op.kind != ir::OpKind::kth_largest) return std::nullopt;
    const ValueId x = op.operands[0];
    const HostExprId k = op.attrs.size;
    if (op.attrs.axis == ir::kAll) {
      return ir::ValueIds{is_top ? top_k(b, x, k) : kth_largest(b, x, k)};
    }
    return ir::ValueIds{is_top ? top_k_of_rows(b, x, k) : kth_largest_of_rows(b, x, k)};
  });
}

}  // namespace cinch::passes
