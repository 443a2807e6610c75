// Pulling values: element-wise operators, leaves, draws.
#include <algorithm>
#include <bit>

#include "compiler/kernelize/kernel_emitter.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
using ir::OpKind;
using kir::ComputeType;
using KirValue = kir::ValueId;

static kir::DrawSite draw_site(const ir::Op& op) {
  return {op.attrs.draw.site, op.attrs.draw.shared};
}

ComputeType unsigned_of(ComputeType type) {
  return type == ComputeType::I64 || type == ComputeType::U64 ? ComputeType::U64 : ComputeType::U32;
}

KirValue KernelValues::at_level_of(const Place& place, const std::function<KirValue()>& make) {
  if (is_element_level(place)) return make();
  return once_for(is_group_level(place), make);
}

KirValue KernelValues::pull(ir::ValueId v, const Place& place) {
  if (const auto it = region_values_.find(v.index()); it != region_values_.end()) return it->second;
  const Place at = type(v).rank == 0 ? uniform_place(b_.const_i64(0), false) : place;
  auto& memo = is_element_level(at) ? element_memo_ : uniform_memo_;
  if (const auto it = memo.find({v.index(), at}); it != memo.end()) return it->second;
  KirValue result;
  if (const auto on_chip = pull_on_chip(v, at)) {
    result = *on_chip;
  } else if (const auto buffer = buffer_of(v)) {
    b_.reads(*buffer, pc_.version_of(cx_.fn, v));
    result = load(*buffer, type(v), at);
  } else {
    result = pull_op(cx_.def(v), v, at);
  }
  (is_element_level(at) ? element_memo_ : uniform_memo_)[{v.index(), at}] = result;
  return result;
}

// The buffer of a value for the current sink, if it has one.
std::optional<rt::BufferIndex> KernelValues::buffer_of(ir::ValueId v) const {
  if (const auto stored = plan_.stored.find(v.index());
      stored != plan_.stored.end() && current_ >= 0) {
    // Also if this sink recomputes what another stores: the other sink's inputs are available.
    const auto& s = plan_.sinks[stored->second];
    const int level = plan_.sinks[current_].level;
    if (s.level < level && (s.changed_by < 0 || level < plan_.sinks[s.changed_by].level))
      return s.buffer;
  }
  if (const auto buffer = cx_.buffer_of(v)) return buffer;
  const auto& op = cx_.def(v);
  switch (op.kind) {
    case OpKind::gradient:
      return pc_.gradient();
    case OpKind::state:
      return pc_.state(op.attrs.index);
    case OpKind::field:
      return pc_.field(op.attrs.index);
    case OpKind::const_array:
      return pc_.table(op.attrs.index);
    case OpKind::count_value:
      return pc_.count(op.attrs.index);
    default:
      return std::nullopt;
  }
}

std::optional<KirValue> KernelValues::pull_on_chip(ir::ValueId v, const Place& place) {
  const auto it = plan_.sink_of_op.find(cx_.value(v).def.index());
  if (it == plan_.sink_of_op.end()) return std::nullopt;
  const int id = it->second;
  if (const auto reduced = reduced_.find(id); reduced != reduced_.end() &&
                                              plan_.sinks[id].kind == SinkKind::RowReduce &&
                                              !is_element_level(place)) {
    return reduced->second[cx_.value(v).result_index];
  }
  if (plan_.sinks[id].kind == SinkKind::RowTransform) return pull_row_on_chip(id, place);
  const auto position = positions_.find(id);
  if (position == positions_.end() || plan_.sinks[id].phase >= phase_) return std::nullopt;
  if (plan_.sinks[id].kind == SinkKind::Nonzero) {
    // Positions of the selection are the elements themselves.
    if (cx_.value(v).result_index != 0 || !is_selected(place) ||
        plan_.sinks[current_].compaction != id)
      return std::nullopt;
    return b_.element();
  }
  if (!is_domain_place(place)) return std::nullopt;
  place_running_sum(id);
  return position->second.rank;
}

// Elements of the current row, after its transformation.
std::optional<KirValue> KernelValues::pull_row_on_chip(int id, const Place& place) {
  const auto local = rows_on_chip_.find(id);
  if (local == rows_on_chip_.end() || plan_.sinks[id].phase >= phase_) return std::nullopt;
  const bool is_in_row = place.row && place.row->kind == Index::Kind::Uniform &&
                         place.row->value == b_.group_index() && place.col &&
                         place.col->kind == Index::Kind::Linear && !place.col->value.is_valid();
  if (!is_domain_place(place) && !is_in_row) return std::nullopt;
  const auto value = b_.local_load(local->second);
  const auto limit = (place.flat ? place.flat : place.col).value_or(Index{}).limit;
  if (!limit.is_valid()) return value;
  const auto is_there = b_.lt(b_.convert(b_.column(), ComputeType::I64), limit);
  return b_.select(is_there, value, b_.zero(b_.type(value)));
}

void KernelValues::place_running_sum(int id) {
  auto& p = positions_.at(id);
  if (p.rank_phase == phase_) return;
  const auto& op = cx_.op(plan_.sinks[id].op);
  const int saved = current_;
  current_ = id;
  const auto value = pull(op.operands[0], domain_place());
  const auto t = b_.type(value);
  const DType whole = kir::dtype_of(t), raw = kir::dtype_of(unsigned_of(t));
  const auto sum = b_.running_sum(b_.bitcast(value, whole, raw), op.attrs.exclusive).value;
  const auto placed = b_.bitcast(b_.add(p.prefix, sum), raw, whole);
  p.rank =
      b_.scalar(ScalarOp::add, {pull_scalar(op.operands[1]), placed}, type(op.results[0]).dtype);
  p.rank_phase = phase_;
  current_ = saved;
}

KirValue KernelValues::load(rt::BufferIndex buffer, const ir::Type& t, const Place& place) {
  return at_level_of(place, [&] {
    if (t.rank == 0) return b_.load_at(buffer, b_.const_i64(0));
    const Index i = flat_of(place, t);
    if (i.kind == Index::Kind::Linear) return b_.load_linear(buffer, i.value, i.limit);
    return b_.load_at(buffer, i.value, i.pred);
  });
}

KirValue KernelValues::pull_op(const ir::Op& op, ir::ValueId v, const Place& place) {
  switch (op.kind) {
    case OpKind::const_scalar:
      return pull_const(op, v);
    case OpKind::param:
      return b_.param(op.attrs.index);
    case OpKind::host_size:
      return pull_host_size(op, v);
    case OpKind::iota:
      return at_level_of(place, [&] { return index_u32(flat_of(place, type(v))); });
    case OpKind::map:
    case OpKind::call_extern:
      return pull_map(op, place);
    case OpKind::fill:
    case OpKind::gather:
    case OpKind::slice:
    case OpKind::transpose:
    case OpKind::unchunk:
    case OpKind::reshape:
      return pull_operand(op, 0, place);
    case OpKind::convert:
    case OpKind::bitcast: {
      const auto x = pull_operand(op, 0, place);
      const DType from = type(op.operands[0]).dtype, to = type(v).dtype;
      return at_level_of(place, [&] {
        return op.kind == OpKind::convert ? b_.convert(x, from, to) : b_.bitcast(x, from, to);
      });
    }
    case OpKind::random:
    case OpKind::random_bits:
    case OpKind::normal:
    case OpKind::random_index:
    case OpKind::stochastic_round:
      return pull_draw(op, v, place);
    case OpKind::gather_along:
      return pull_gather_along(op, v, place);
    case OpKind::concat:
      return pull_concat(op, v, place);
    case OpKind::chunk:
      return pull_chunk(op, v, place);
    case OpKind::pack:
      return pull_pack(op, v, place);
    case OpKind::unpack:
      return pull_unpack(op, v, place);
    default:
      CINCH_BUG("not a pulled operator: " + std::string(ir::op_info(op.kind).name));
  }
}

KirValue KernelValues::pull_const(const ir::Op& op, ir::ValueId v) {
  const auto t = kir::compute_type(type(v).dtype);
  const auto bits = op.attrs.bits;
  if (t == ComputeType::F32) return b_.const_f32(static_cast<float>(std::bit_cast<double>(bits)));
  if (t == ComputeType::U32) return b_.const_u32(static_cast<std::uint32_t>(bits));
  if (t == ComputeType::I32) return b_.const_i32(static_cast<std::int32_t>(bits));
  return b_.constant(t, bits);
}

KirValue KernelValues::pull_host_size(const ir::Op& op, ir::ValueId v) {
  const auto value = host_value(op.attrs.size);
  return b_.in_kernel(
      [&] { return b_.convert(value, kir::dtype_of(b_.type(value)), type(v).dtype); });
}

// The integer type in whose bits an element-wise operator works: that of its result, or of its
// operand if the result counts the operand's bits.
std::optional<DType> KernelValues::integer_type(const ir::Op& op) const {
  const bool counts_bits = scalar_op_info(op.attrs.scalar_op).result == ScalarResult::U32;
  const DType dtype = type(counts_bits ? op.operands[0] : op.results[0]).dtype;
  return is_int(dtype) ? std::optional(dtype) : std::nullopt;
}

KirValue KernelValues::pull_map(const ir::Op& op, const Place& place) {
  std::vector<KirValue> operands;
  operands.reserve(op.operands.size());
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    operands.push_back(pull_operand(op, i, place));
  return at_level_of(place, [&] {
    return op.kind == OpKind::call_extern
               ? b_.call_extern(op.attrs.index, operands)
               : b_.scalar(op.attrs.scalar_op, operands, integer_type(op));
  });
}

KirValue KernelValues::pull_draw(const ir::Op& op, ir::ValueId v, const Place& place) {
  const bool rounds = op.kind == OpKind::stochastic_round;
  const std::size_t iteration_at = rounds ? 1 : 0;
  KirValue iteration, x;
  if (op.operands.size() > iteration_at) {
    const auto value = pull_scalar(op.operands[iteration_at]);
    iteration = b_.in_kernel([&] { return b_.convert(value, ComputeType::I64); });
  }
  if (rounds) x = pull_operand(op, 0, place);
  const auto size = op.kind == OpKind::random_index ? host_value(op.attrs.size) : KirValue();
  return at_level_of(place, [&] {
    const auto index = type(v).rank == 0 ? b_.const_u32(0) : index_u32(flat_of(place, type(v)));
    switch (op.kind) {
      case OpKind::random:
        return b_.random(draw_site(op), index, iteration);
      case OpKind::random_bits:
        return b_.random_bits(draw_site(op), index, iteration);
      case OpKind::normal:
        return b_.normal(draw_site(op), index, iteration);
      case OpKind::random_index:
        return b_.random_index(draw_site(op), index, size, iteration);
      default:
        return b_.stochastic_round(draw_site(op), x, index, iteration);
    }
  });
}

// Pulling values: the operators that only move elements.

using KirValue = kir::ValueId;

KirValue KernelValues::pull_gather_along(const ir::Op& op, ir::ValueId v, const Place& place) {
  const auto& tx = type(op.operands[0]);
  const auto [row, col] = row_col_of(place, type(v), {});
  const Place at{place.flat, row, col};
  if (op.attrs.axis == 1)
    return pull(op.operands[0], {std::nullopt, row, index_at(op.operands[1], at, tx.dims[1])});
  return pull(op.operands[0], {std::nullopt, index_at(op.operands[1], at, tx.dims[0]), col});
}

// The parts follow one another in a line: that of all elements, or of the columns of matrices.
KirValue KernelValues::pull_concat(const ir::Op& op, ir::ValueId v, const Place& place) {
  const bool is_by_row = op.attrs.axis == 1;
  std::optional<Index> row;
  Place line = place;
  if (is_by_row) {
    const auto both = row_col_of(place, type(v), {});
    row = both.first;
    line = {both.second, {}, {}};
  }
  const Index at = flat_of(line, type(v));
  const auto i = at_level_of(line, [&] { return index_u32(at); });
  KirValue result;
  auto& pool = pc_.exprs();
  HostExprId offset = pool.const_int(0);
  for (const auto part : op.operands) {
    const auto begin = b_.in_kernel([&] { return b_.convert(host_value(offset), kI64, kU32); });
    offset = pool.add(offset, is_by_row ? type(part).dims[1] : pc_.num_elems(type(part)));
    const auto end = b_.in_kernel([&] { return b_.convert(host_value(offset), kI64, kU32); });
    const auto inside = at_level_of(
        line, [&] { return b_.logical_and(b_.scalar(ScalarOp::ge, {i, begin}), b_.lt(i, end)); });
    const auto there = at_level_of(line, [&] { return b_.sub(i, begin); });
    const Index within = computed_index(line, there, inside);
    const auto value =
        pull(part, is_by_row ? Place{std::nullopt, row, within} : Place{within, {}, {}});
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
      // The low bits of an integer are those of its two's complement: a conversion of a negative
      // number to an unsigned type would saturate.
      const auto raw_bits = is_signed_int(type(x).dtype)
                                ? b_.bitcast(b_.convert(value, ComputeType::I64), kI64, kU64)
                                : b_.convert(value, ComputeType::U64);
      const auto raw = b_.select(is_there, raw_bits, u64(0));
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
