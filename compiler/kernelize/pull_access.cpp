// Pulling values: the operators that only move elements.
#include <algorithm>

#include "compiler/kernelize/kernel_values.h"

namespace cinch::codegen {

using ir::OpKind;
using kir::ComputeType;
using KirValue = kir::ValueId;

KirValue KernelValues::pull_gather_along(const ir::Op& op, ir::ValueId v, const Place& place) {
  const auto& tx = type(op.operands[0]);
  const auto [row, col] = row_col_of(place, type(v), {});
  const Place at{place.flat, row, col};
  if (op.attrs.axis == 1)
    return pull(op.operands[0], {std::nullopt, row, index_at(op.operands[1], at, tx.dims[1])});
  return pull(op.operands[0], {std::nullopt, index_at(op.operands[1], at, tx.dims[0]), col});
}

KirValue KernelValues::pull_concat(const ir::Op& op, ir::ValueId v, const Place& place) {
  const Index at = flat_of(place, type(v));
  const auto i = at_level_of(place, [&] { return index_u32(at); });
  KirValue result;
  auto& pool = pc_.exprs();
  HostExprId offset = pool.const_int(0);
  for (const auto part : op.operands) {
    const auto begin = b_.in_kernel([&] { return b_.convert(host_value(offset), kI64, kU32); });
    offset = pool.add(offset, pc_.num_elems(type(part)));
    const auto end = b_.in_kernel([&] { return b_.convert(host_value(offset), kI64, kU32); });
    const auto inside = at_level_of(
        place, [&] { return b_.logical_and(b_.scalar(ScalarOp::ge, {i, begin}), b_.lt(i, end)); });
    const auto there = at_level_of(place, [&] { return b_.sub(i, begin); });
    const auto value = pull(part, {computed_index(place, there, inside), {}, {}});
    result = result.is_valid()
                 ? at_level_of(place, [&] { return b_.select(inside, value, result); })
                 : value;
  }
  return result;
}

// The same row-major index; after the end of a chunked vector there are zeros.
KirValue KernelValues::pull_chunk(const ir::Op& op, ir::ValueId v, const Place& place) {
  const auto x = op.operands[0];
  Index flat = flat_of(place, type(v));
  const auto size = host_value(type(x).dims[0]);
  if (flat.kind == Index::Kind::Linear) {
    const auto known = is_domain_place(place) ? row_limit(type(x).dims[0]) : KirValue();
    const bool is_known = known && (!flat.limit || flat.limit == known);
    const auto make = [&] {
      const auto ends = flat.value.is_valid() ? b_.sub(size, flat.value) : size;
      return flat.limit.is_valid() ? b_.min(ends, flat.limit) : ends;
    };
    flat.limit = is_known ? known : once_for(flat.is_group_level, make);
    const auto value = pull(x, {flat, {}, {}});
    if (buffer_of(x)) return value;  // loads return zeros beyond the limit
    return b_.select(is_below_limit(flat), value, b_.zero(b_.type(value)));
  }
  const Place at{flat, {}, {}};
  const auto below = at_level_of(at, [&] {
    return flat.kind == Index::Kind::Uniform
               ? b_.lt(flat.value, size)
               : b_.lt(flat.value, b_.in_kernel([&] { return b_.convert(size, kI64, kU32); }));
  });
  const auto outer = flat.pred;
  flat.pred =
      outer.is_valid() ? at_level_of(at, [&] { return b_.logical_and(outer, below); }) : below;
  const auto value = pull(x, {flat, {}, {}});
  return at_level_of(at, [&] { return b_.select(flat.pred, value, b_.zero(b_.type(value))); });
}

// --- packing inside a program --------------------------------------------------------------------

// The low bits of an integer are those of its two's complement: a conversion of a negative number
// to an unsigned type would saturate.
KirValue KernelValues::bits_of_integer(KirValue value, DType dtype) {
  if (!is_signed_int(dtype)) return b_.convert(value, ComputeType::U64);
  return b_.bitcast(b_.convert(value, ComputeType::I64), kI64, kU64);
}

// Byte p of a packed array holds bits 8p … 8p + 7: parts of at most 8 / bits + 2 elements.
KirValue KernelValues::pull_pack(const ir::Op& op, ir::ValueId v, const Place& place) {
  const auto bits = static_cast<std::int64_t>(op.attrs.bits);
  const auto x = op.operands[0];
  const auto u64 = [&](std::uint64_t c) { return b_.const_u64(c); };
  const auto size =
      b_.in_kernel([&] { return b_.convert(host_value(type(x).dims[0]), ComputeType::U64); });
  const auto byte = at_level_of(
      place, [&] { return b_.convert(index_u32(flat_of(place, type(v))), ComputeType::U64); });
  const auto first_bit = at_level_of(place, [&] { return b_.mul(byte, u64(8)); });
  KirValue sum;
  const int num_parts = static_cast<int>(8 / bits) + 2;
  for (int part = 0; part < num_parts; ++part) {
    const auto element = at_level_of(place, [&] {
      return b_.add(b_.scalar(ScalarOp::div, {first_bit, u64(static_cast<std::uint64_t>(bits))}),
                    u64(static_cast<std::uint64_t>(part)));
    });
    const auto is_there = at_level_of(place, [&] { return b_.lt(element, size); });
    const auto value = pull(x, {computed_index(place, element, is_there), {}, {}});
    sum = at_level_of(place, [&] {
      const auto raw = b_.select(is_there, bits_of_integer(value, type(x).dtype), u64(0));
      const auto low =
          b_.scalar(ScalarOp::bit_and, {raw, u64(bits >= 64 ? ~0ULL : (1ULL << bits) - 1)});
      const auto start = b_.mul(element, u64(static_cast<std::uint64_t>(bits)));
      const auto is_later = b_.scalar(ScalarOp::ge, {start, first_bit});
      const auto up = b_.min(b_.sub(start, first_bit), u64(8)),
                 down = b_.min(b_.sub(first_bit, start), u64(63));
      const auto shifted = b_.select(is_later, b_.scalar(ScalarOp::shl, {low, up}),
                                     b_.scalar(ScalarOp::shr, {low, down}));
      return sum.is_valid() ? b_.scalar(ScalarOp::bit_or, {sum, shifted}) : shifted;
    });
  }
  return at_level_of(place, [&] {
    return b_.convert(b_.scalar(ScalarOp::bit_and, {sum, u64(255)}), kir::compute_type(kU8));
  });
}

KirValue KernelValues::pull_unpack(const ir::Op& op, ir::ValueId v, const Place& place) {
  const auto bits = op.attrs.bits;
  const auto x = op.operands[0];
  const auto size =
      b_.in_kernel([&] { return b_.convert(host_value(type(x).dims[0]), ComputeType::U64); });
  const auto start = at_level_of(place, [&] {
    return b_.mul(b_.convert(index_u32(flat_of(place, type(v))), ComputeType::U64),
                  b_.const_u64(bits));
  });
  // 0 after the end.
  const auto byte_of = [&](std::uint64_t part) {
    const auto byte = at_level_of(place, [&] {
      return b_.add(b_.scalar(ScalarOp::shr, {start, b_.const_u64(3)}), b_.const_u64(part));
    });
    const auto is_there = at_level_of(place, [&] { return b_.lt(byte, size); });
    const auto value = pull(x, {computed_index(place, byte, is_there), {}, {}});
    return at_level_of(place, [&] {
      return b_.select(is_there, b_.convert(value, ComputeType::U64), b_.const_u64(0));
    });
  };
  constexpr std::uint64_t kWordBytes = 8;
  const std::uint64_t parts = (bits + 14) / 8;
  KirValue sum;
  for (std::uint64_t part = 0; part < std::min(parts, kWordBytes); ++part) {
    const auto raw = byte_of(part);
    sum = at_level_of(place, [&] {
      const auto shifted = b_.scalar(ScalarOp::shl, {raw, b_.const_u64(8 * part)});
      return sum.is_valid() ? b_.scalar(ScalarOp::bit_or, {sum, shifted}) : shifted;
    });
  }
  const auto last = parts > kWordBytes ? byte_of(kWordBytes) : KirValue();
  return at_level_of(place, [&] {
    const auto moved = b_.scalar(ScalarOp::bit_and, {start, b_.const_u64(7)});
    auto word = b_.scalar(ScalarOp::shr, {sum, moved});
    if (last.is_valid()) {  // a ninth byte comes 64 - moved bits up: by 1, then by the rest
      const auto up = b_.sub(b_.const_u64(63), moved);
      const auto once = b_.scalar(ScalarOp::shl, {last, b_.const_u64(1)});
      word = b_.scalar(ScalarOp::bit_or, {word, b_.scalar(ScalarOp::shl, {once, up})});
    }
    const std::uint64_t mask = bits >= 64 ? ~0ULL : (1ULL << bits) - 1;
    const auto low = b_.scalar(ScalarOp::bit_and, {word, b_.const_u64(mask)});
    return b_.convert(low, kir::compute_type(type(v).dtype));
  });
}

}  // namespace cinch::codegen
