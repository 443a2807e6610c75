// Pulling values: places, and the operators that only move elements.
#include <algorithm>

#include "compiler/ir/ops.h"
#include "compiler/kernelize/kernel_emitter.h"
#include "compiler/kernelize/walk_pulls.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using ir::OpKind;
using kir::ComputeType;
using KirValue = kir::ValueId;

// --- places --------------------------------------------------------------------------------------

Place KernelEmitter::uniform_place(KirValue i64, bool is_group_level) const {
  return {Index{Index::Kind::Uniform, i64, {}, {}, is_group_level}, {}, {}};
}

Place KernelEmitter::domain_place() {
  const Index flat{Index::Kind::Linear, b_.group_base(), {}, {}, true};
  if (kp_.domain.kind != kir::GroupKind::Row) return {flat, {}, {}};
  return {flat, Index{Index::Kind::Uniform, b_.group_index(), {}, {}, true}, Index{}};
}

Place KernelEmitter::domain_place(const ir::Type& t) {
  const bool is_same = t.rank == 2 && t.dims[0] == kp_.domain.rows && t.dims[1] == kp_.domain.cols;
  if (is_same) return domain_place();
  Index flat{Index::Kind::Linear, b_.group_base(), {}, {}, true};
  flat.limit = row_limit(pc_.num_elems(t));
  return {flat, std::nullopt, std::nullopt};
}

KirValue KernelEmitter::row_limit(HostExprId elems) {
  const auto& d = kp_.domain;
  if (d.kind != kir::GroupKind::Row || elems == pc_.exprs().mul(d.rows, d.cols)) return {};
  KirValue& limit = row_limits_[elems.index()];
  if (!limit) limit = b_.in_group([&] { return b_.sub(host_value(elems), b_.group_base()); });
  return limit;
}

bool KernelEmitter::is_domain_place(const Place& place) {
  return place.flat && place.flat->kind == Index::Kind::Linear &&
         place.flat->value == b_.group_base();
}

Place KernelEmitter::selected_place(int selection) const {
  const auto& p = positions_.at(selection);
  return {Index{Index::Kind::Varying, p.rank, {}, p.pred, false}, {}, {}};
}

bool KernelEmitter::is_selected(const Place& place) const {
  if (current_ < 0 || plan_.sinks[current_].compaction < 0) return false;
  const auto p = positions_.find(plan_.sinks[current_].compaction);
  return p != positions_.end() && p->second.rank_phase == phase_ && place.flat &&
         place.flat->kind == Index::Kind::Varying && place.flat->value == p->second.rank;
}

KirValue KernelEmitter::once_for(bool is_group_level, const std::function<KirValue()>& make) {
  return is_group_level ? b_.in_group(make) : b_.in_kernel(make);
}

KirValue KernelEmitter::is_below_limit(const Index& linear) {
  return b_.lt(b_.column(), once_for(linear.is_group_level,
                                     [&] { return b_.convert(linear.limit, kI64, kU32); }));
}

KirValue KernelEmitter::index_u32(const Index& index) {
  if (index.kind == Index::Kind::Varying) return index.value;
  if (index.kind == Index::Kind::Uniform) return b_.convert(index.value, ComputeType::U32);
  if (!index.value.is_valid()) return b_.column();
  if (index.value == b_.group_base()) return b_.element();
  const auto base =
      once_for(index.is_group_level, [&] { return b_.convert(index.value, ComputeType::U32); });
  return b_.add(base, b_.column());
}

Index KernelEmitter::flat_of(const Place& place, const ir::Type& t) {
  if (place.flat) return *place.flat;
  CINCH_CHECK(place.row, "a place without an index");
  // A vector in terms of rows is [n, 1].
  if (t.rank < 2) return *place.row;
  CINCH_CHECK(place.col, "a place in a matrix without a column");
  const Index row = *place.row, col = *place.col;
  // The index of the only row or column carries no information, unless it tells which elements
  // exist.
  const auto is_open = [](const Index& i) { return !i.limit.is_valid() && !i.pred.is_valid(); };
  if (pc_.is_const(t.dims[1], 1) && is_open(col)) return row;
  if (pc_.is_const(t.dims[0], 1) && is_open(row)) return col;
  const auto cols = host_value(t.dims[1]);
  const bool is_group = row.is_group_level || col.is_group_level;
  const auto uniform = [&](const std::function<KirValue()>& make) {
    return once_for(is_group, make);
  };
  // Neighbours in a row that is the same for all: if the row does not exist, no element does.
  const bool is_guarded_row = row.pred.is_valid() && col.kind == Index::Kind::Linear &&
                              !col.value.is_valid() && t.dtype.bits % 8 == 0;
  if (row.kind == Index::Kind::Uniform && (!row.pred.is_valid() || is_guarded_row) &&
      col.kind != Index::Kind::Varying && !col.pred.is_valid()) {
    const auto base = uniform([&] {
      const auto start = b_.mul(row.value, cols);
      return col.value.is_valid() ? b_.add(start, col.value) : start;
    });
    if (!is_guarded_row) return {col.kind, base, col.limit, {}, is_group};
    const auto limit = uniform([&] {
      return b_.select(row.pred, col.limit.is_valid() ? col.limit : cols, b_.const_i64(0));
    });
    return {col.kind, base, limit, {}, is_group};
  }
  Index out{Index::Kind::Varying, {}, {}, row.pred.is_valid() ? row.pred : col.pred, false};
  const bool both = row.pred.is_valid() && col.pred.is_valid();
  if (row.kind == Index::Kind::Uniform && col.kind == Index::Kind::Uniform) {
    out.kind = Index::Kind::Uniform;
    out.is_group_level = is_group;
    out.value = uniform([&] { return b_.add(b_.mul(row.value, cols), col.value); });
    if (both) out.pred = uniform([&] { return b_.logical_and(row.pred, col.pred); });
    return out;
  }
  const auto c = b_.in_kernel([&] { return b_.convert(cols, ComputeType::U32); });
  out.value = b_.add(b_.mul(index_u32(row), c), index_u32(col));
  if (both) out.pred = b_.logical_and(row.pred, col.pred);
  for (const auto& i : {row, col}) {
    if (i.kind != Index::Kind::Linear || !i.limit.is_valid()) continue;
    const auto in_range = is_below_limit(i);
    out.pred = out.pred.is_valid() ? b_.logical_and(out.pred, in_range) : in_range;
  }
  return out;
}

std::pair<Index, Index> KernelEmitter::row_col_of(const Place& place, const ir::Type& t,
                                                  Halves halves) {
  if (place.row && place.col) return {*place.row, *place.col};
  CINCH_CHECK(place.flat, "a place without an index");
  const Index flat = *place.flat;
  const auto& d = kp_.domain;
  if (d.kind == kir::GroupKind::Row && flat.kind == Index::Kind::Linear &&
      flat.value == b_.group_base() && t.dims[0] == d.rows && t.dims[1] == d.cols) {
    // A vector that is swept by rows, seen as these rows again.
    return {domain_place().row.value_or(Index{}),
            Index{Index::Kind::Linear, {}, flat.limit, {}, flat.is_group_level}};
  }
  const Index zero{Index::Kind::Uniform, b_.const_i64(0), {}, {}, false};
  if (pc_.is_const(t.dims[1], 1)) return {flat, zero};
  if (pc_.is_const(t.dims[0], 1)) return {zero, flat};
  const auto cols = host_value(t.dims[1]);
  if (flat.kind == Index::Kind::Uniform) {
    const auto split = [&](ScalarOp op, bool is_needed) {
      if (!is_needed) return zero;
      const auto part =
          once_for(flat.is_group_level, [&] { return b_.scalar(op, {flat.value, cols}); });
      return Index{Index::Kind::Uniform, part, {}, flat.pred, flat.is_group_level};
    };
    return {split(ScalarOp::div, halves.row), split(ScalarOp::mod, halves.col)};
  }
  const auto c = b_.in_kernel([&] { return b_.convert(cols, ComputeType::U32); });
  const auto i = index_u32(flat);
  KirValue pred = flat.pred;
  if (flat.kind == Index::Kind::Linear && flat.limit.is_valid()) {
    pred = is_below_limit(flat);
  }
  const auto split = [&](ScalarOp op, bool is_needed) {
    if (!is_needed) return zero;
    return Index{Index::Kind::Varying, b_.scalar(op, {i, c}), {}, pred, false};
  };
  return {split(ScalarOp::div, halves.row), split(ScalarOp::mod, halves.col)};
}

Place KernelEmitter::broadcast_place(const Place& place, const ir::Type& operand,
                                     const ir::Type& result) {
  if (operand.rank == 0) return uniform_place(b_.const_i64(0), false);
  bool is_same = operand.rank == result.rank;
  for (int i = 0; is_same && i < operand.rank; ++i) is_same = operand.dims[i] == result.dims[i];
  if (is_same) return place;
  const Index zero{Index::Kind::Uniform, b_.const_i64(0), {}, {}, false};
  if (operand.rank == 1) return pc_.is_const(operand.dims[0], 1) ? Place{zero, {}, {}} : place;
  const auto is_repeated = [&](int d) {
    return pc_.is_const(operand.dims[d], 1) && !pc_.is_const(result.dims[d], 1);
  };
  const Halves kept{!is_repeated(0), !is_repeated(1)};
  auto [row, col] = row_col_of(place, result, kept);
  if (!kept.row) row = zero;
  if (!kept.col) col = zero;
  return {std::nullopt, row, col};
}

// Where the operator reads operand `i`, by ops.def; Moved operators compute that themselves.
Place KernelEmitter::place_of_operand(const ir::Op& op, std::size_t i, const Place& place) {
  const auto& to = type(op.results[0]);
  switch (ir::reads_of(op, i)) {
    case ir::Reads::Pointwise:
      return broadcast_place(place, type(op.operands[i]), to);
    case ir::Reads::SameIndex:
      return {flat_of(place, to), {}, {}};
    case ir::Reads::Swapped: {
      const auto [row, col] = row_col_of(place, to, {});
      return {std::nullopt, col, row};
    }
    case ir::Reads::Gathered:
      return gathered_place(op, place);
    case ir::Reads::Shifted:
      return shifted_place(op, place);
    case ir::Reads::Index:
    case ir::Reads::Moved:
    case ir::Reads::Nothing:
    case ir::Reads::Swept:
      break;
  }
  CINCH_BUG("no place of an operand of " + std::string(ir::op_info(op.kind).name));
}

Place KernelEmitter::shifted_place(const ir::Op& op, const Place& place) {
  const auto begin = host_value(op.attrs.size);
  const auto shifted = [&](Index i) {
    if (i.kind == Index::Kind::Varying) {
      const auto offset = b_.in_kernel([&] { return b_.convert(begin, ComputeType::U32); });
      i.value = b_.add(i.value, offset);
      return i;
    }
    i.value = once_for(i.is_group_level,
                       [&] { return i.value.is_valid() ? b_.add(i.value, begin) : begin; });
    return i;
  };
  const auto& to = type(op.results[0]);
  if (to.rank == 1) return {shifted(flat_of(place, to)), {}, {}};
  const auto [row, col] = row_col_of(place, to, {});
  return {std::nullopt, shifted(row), col};
}

Place KernelEmitter::gathered_place(const ir::Op& op, const Place& place) {
  const auto idx = op.operands[1];
  const auto& from = type(op.operands[0]);
  const auto& to = type(op.results[0]);
  if (is_selected(place) && from.rank == 1) {
    const auto selection = cx_.op(plan_.sinks[plan_.sinks[current_].compaction].op).results[0];
    if (is_selection(cx_, idx, selection)) return domain_place();
  }
  if (from.rank == 1) return {index_at(idx, place, from.dims[0]), {}, {}};
  if (type(idx).rank == 0)
    return {std::nullopt, index_at(idx, place, from.dims[0]), flat_of(place, to)};
  const auto [row, col] = row_col_of(place, to, {});
  return {std::nullopt, index_at(idx, {row, {}, {}}, from.dims[0]), col};
}

// An element computed from the current place, u32 or u64, which exists if `pred` holds.
Index KernelEmitter::computed_index(const Place& place, KirValue element, KirValue pred) {
  const bool varies = is_element_level(place);
  Index i{varies ? Index::Kind::Varying : Index::Kind::Uniform,
          {},
          {},
          pred,
          !varies && is_group_level(place)};
  i.value = at_level_of(
      place, [&] { return b_.convert(element, varies ? ComputeType::U32 : ComputeType::I64); });
  return i;
}

// The value of the index `idx` at `place`, guarded by the extent below which it must lie.
Index KernelEmitter::index_at(ir::ValueId idx, const Place& place, HostExprId extent) {
  if (type(idx).rank > 0 && is_element_level(place)) return new_index_at(idx, place, extent);
  // Computed once for all uses of the same element, so that they find it at the same place.
  const std::tuple key(idx.index(), place, extent.index());
  if (const auto known = index_memo_.find(key); known != index_memo_.end()) return known->second;
  const Index made = new_index_at(idx, place, extent);
  return index_memo_[key] = made;
}

Index KernelEmitter::new_index_at(ir::ValueId idx, const Place& place, HostExprId extent) {
  const auto value = pull(idx, place);
  const auto size = host_value(extent);
  const DType dtype = type(idx).dtype;
  const bool is_scalar = type(idx).rank == 0;
  if (is_scalar || !is_element_level(place)) {
    Index out{Index::Kind::Uniform, {}, {}, {}, !is_scalar && is_group_level(place)};
    const Place at = is_scalar ? uniform_place(b_.const_i64(0), false) : place;
    out.value = at_level_of(at, [&] { return b_.convert(value, dtype, kI64); });
    out.pred = at_level_of(at, [&] {
      return b_.logical_and(b_.lt(out.value, size),
                            b_.scalar(ScalarOp::ge, {out.value, b_.const_i64(0)}));
    });
    return out;
  }
  const auto limit = b_.in_kernel([&] { return b_.convert(size, kI64, kU32); });
  const auto u32 = b_.convert(value, dtype, kU32);
  return {Index::Kind::Varying, u32, {}, b_.lt(u32, limit), false};
}

KirValue KernelEmitter::pull_gather_along(const ir::Op& op, ir::ValueId v, const Place& place) {
  const auto& tx = type(op.operands[0]);
  const auto [row, col] = row_col_of(place, type(v), {});
  const Place at{place.flat, row, col};
  if (op.attrs.axis == 1)
    return pull(op.operands[0], {std::nullopt, row, index_at(op.operands[1], at, tx.dims[1])});
  return pull(op.operands[0], {std::nullopt, index_at(op.operands[1], at, tx.dims[0]), col});
}

KirValue KernelEmitter::pull_concat(const ir::Op& op, ir::ValueId v, const Place& place) {
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
KirValue KernelEmitter::pull_chunk(const ir::Op& op, ir::ValueId v, const Place& place) {
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
KirValue KernelEmitter::bits_of_integer(KirValue value, DType dtype) {
  if (!is_signed_int(dtype)) return b_.convert(value, ComputeType::U64);
  return b_.bitcast(b_.convert(value, ComputeType::I64), kI64, kU64);
}

// Byte p of a packed array holds bits 8p … 8p + 7: parts of at most 8 / bits + 2 elements.
KirValue KernelEmitter::pull_pack(const ir::Op& op, ir::ValueId v, const Place& place) {
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

KirValue KernelEmitter::pull_unpack(const ir::Op& op, ir::ValueId v, const Place& place) {
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
