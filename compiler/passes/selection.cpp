// Keys of values, and selection in rows; see selection.h.
#include <algorithm>
#include <bit>

#include "compiler/ir/rewriter.h"
#include "compiler/lower/prelude.h"
#include "compiler/passes/selection.h"

namespace cinch::passes {
namespace {

using ir::ValueId;
using lower::call_prelude;

DType key_type_of(DType type) {
  return type.bits > 32 ? kU64 : kU32;
}

bool is_abs(const ir::Function& function, ValueId value) {
  const ir::Op& op = ir::defining_op(function, value);
  return op.kind == ir::OpKind::map && op.attrs.scalar_op == ScalarOp::abs;
}

SelectionKeys float_keys(ir::Builder& b, ValueId values, ZeroOrder zeros) {
  const bool is_magnitude = zeros == ZeroOrder::Equal && is_abs(b.function(), values);
  if (is_narrow_float(b.dtype(values))) values = b.convert(values, kF32);
  const DType type = b.dtype(values), key_type = key_type_of(type);
  if (is_magnitude) return {b.bitcast(values, key_type), key_type, type.bits, true};
  // -0 becomes +0.
  if (zeros == ZeroOrder::Equal) values = b.map(ScalarOp::add, values, b.constant(type, 0));
  const ValueId keys = call_prelude(b, "keys_of_floats", type, {type.bits, values})[0];
  return {keys, key_type, type.bits};
}

}  // namespace

SelectionKeys make_keys(ir::Builder& b, ValueId values, ZeroOrder zeros) {
  const DType type = b.dtype(values), key_type = key_type_of(type);
  if (is_float(type)) return float_keys(b, values, zeros);
  if (!is_signed_int(type)) return {b.convert(values, key_type), key_type, type.bits};
  const ValueId keys =
      call_prelude(b, "keys_of_integers", type, {type.bits, key_type.bits, values})[0];
  return {keys, key_type, type.bits};
}

ValueId value_of_key(ir::Builder& b, const SelectionKeys& keys, ValueId key, DType type) {
  if (is_float(type)) {
    const DType wide = keys.bits == 64 ? kF64 : kF32;
    const ValueId value = keys.is_magnitude
                              ? b.bitcast(key, wide)
                              : call_prelude(b, "floats_of_keys", wide, {keys.bits, key})[0];
    return b.convert(value, type);
  }
  if (!is_signed_int(type)) return b.convert(key, type);
  return call_prelude(b, "integers_of_keys", type, {keys.bits, keys.key_type.bits, key})[0];
}

namespace {

// Shorter rows are sorted in registers, which is faster (docs/benchmarks/cpu.md).
constexpr std::int64_t kLeastCountedColumns = 33;
constexpr std::int64_t kMostCountedColumns = 1 << 16;
constexpr int kRowDigitBits = 2;

// [rows, 1] of zeros, for these keys.
ValueId zeros_beside(ir::Builder& b, ValueId keys) {
  const ir::Type column = ir::matrix_type(kU32, b.type(keys).dims[0], b.exprs().const_int(1));
  return b.fill(b.constant_int(kU32, 0), column);
}

// [rows, 1]: the number of true elements in each row.
ValueId count_in_rows(ir::Builder& b, ValueId mask) {
  return b.reduce(ScalarOp::add, b.convert(mask, kU32), 1);
}

// For each row, the largest number of `bits` bits for which `is_reached` is true; it maps a column
// of numbers to a column of truths. 0 always counts as reached. `is_reached` is monotonic: above a
// number that is not reached, none is.
template <class IsReached>
ValueId greatest_reached(ir::Builder& b, ValueId zeros, int bits, const IsReached& is_reached) {
  ValueId found = zeros;
  for (int shift = bits; shift > 0;) {
    const int width = shift % kRowDigitBits == 0 ? kRowDigitBits : shift % kRowDigitBits;
    shift -= width;
    const ValueId before = found;
    for (std::int64_t digit = 1; digit < std::int64_t{1} << width; ++digit) {
      const ValueId tried = b.map(ScalarOp::bit_or, before, b.constant_int(kU32, digit << shift));
      found = b.select(is_reached(tried), tried, found);
    }
  }
  return found;
}

}  // namespace

bool can_count_rows(ir::Builder& b, const SelectionKeys& keys) {
  const auto cols = ir::constant_size(b.exprs(), b.type(keys.keys).dims[1]);
  return cols && *cols >= kLeastCountedColumns && *cols <= kMostCountedColumns && keys.bits <= 32;
}

bool fits_a_tile(ir::Builder& b, const SelectionKeys& keys) {
  const auto cols = ir::constant_size(b.exprs(), b.type(keys.keys).dims[1]);
  return cols && *cols <= ir::kMostMarkedColumns;
}

ValueId ranked_keys_of_rows(ir::Builder& b, const SelectionKeys& keys, ValueId k) {
  if (fits_a_tile(b, keys)) {
    const ValueId above_all = b.identity(ScalarOp::min, kU32);
    const ValueId is_marked =
        b.map(ScalarOp::ne, b.mark_largest(keys.keys, k), b.constant_int(kU32, 0));
    return b.reduce(ScalarOp::min, b.select(is_marked, keys.keys, above_all), 1);
  }
  return greatest_reached(b, zeros_beside(b, keys.keys), keys.bits, [&](ValueId key) {
    return b.map(ScalarOp::ge, count_in_rows(b, b.map(ScalarOp::ge, keys.keys, key)), k);
  });
}

ValueId mask_of_largest_in_rows(ir::Builder& b, const SelectionKeys& keys, ValueId k) {
  const ValueId least = ranked_keys_of_rows(b, keys, k);
  const ValueId is_above = b.map(ScalarOp::gt, keys.keys, least);
  const ValueId is_equal = b.map(ScalarOp::eq, keys.keys, least);
  const ValueId need = b.map(ScalarOp::sub, k, count_in_rows(b, is_above));
  const HostExprId cols = b.type(keys.keys).dims[1];
  const auto last = static_cast<std::uint64_t>(b.exprs().const_value(cols).as_int() - 1);
  const ValueId column =
      b.reshape(b.iota(cols), ir::matrix_type(kU32, b.exprs().const_int(1), cols));
  // The last column whose equal key is needed: before it there are not enough.
  const ValueId cut =
      greatest_reached(b, zeros_beside(b, keys.keys), std::bit_width(last), [&](ValueId place) {
        const ValueId is_before = b.map(ScalarOp::lt, column, place);
        const ValueId num = count_in_rows(b, b.map(ScalarOp::bit_and, is_equal, is_before));
        return b.map(ScalarOp::lt, num, need);
      });
  const ValueId in_time = b.map(ScalarOp::le, column, cut);
  return b.map(ScalarOp::bit_or, is_above, b.map(ScalarOp::bit_and, is_equal, in_time));
}

}  // namespace cinch::passes
