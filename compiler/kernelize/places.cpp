// Places of values: where a kernel's current element lies in an array, and where operators read.
#include "compiler/ir/ops.h"
#include "compiler/kernelize/kernel_emitter.h"
#include "compiler/kernelize/walk_pulls.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using ir::OpKind;
using kir::ComputeType;
using KirValue = kir::ValueId;

Place uniform_place(KirValue i64, bool is_group_level) {
  return {Index{Index::Kind::Uniform, i64, {}, {}, is_group_level}, {}, {}};
}

bool is_element_level(const Place& place) {
  const auto element = [](const std::optional<Index>& i) {
    return i && i->kind != Index::Kind::Uniform;
  };
  return element(place.flat) || element(place.row) || element(place.col);
}

bool is_group_level(const Place& place) {
  const auto group = [](const std::optional<Index>& i) { return i && i->is_group_level; };
  return group(place.flat) || group(place.row) || group(place.col);
}

Place KernelValues::domain_place() {
  const Index flat{Index::Kind::Linear, b_.group_base(), {}, {}, true};
  if (kp_.domain.kind != kir::GroupKind::Row) return {flat, {}, {}};
  return {flat, Index{Index::Kind::Uniform, b_.group_index(), {}, {}, true}, Index{}};
}

Place KernelValues::domain_place(const ir::Type& t) {
  const bool is_same = t.rank == 2 && t.dims[0] == kp_.domain.rows && t.dims[1] == kp_.domain.cols;
  if (is_same) return domain_place();
  Index flat{Index::Kind::Linear, b_.group_base(), {}, {}, true};
  flat.limit = row_limit(pc_.num_elems(t));
  return {flat, std::nullopt, std::nullopt};
}

KirValue KernelValues::row_limit(HostExprId elems) {
  const auto& d = kp_.domain;
  if (d.kind != kir::GroupKind::Row || elems == pc_.exprs().mul(d.rows, d.cols)) return {};
  KirValue& limit = row_limits_[elems.index()];
  if (!limit) limit = b_.in_group([&] { return b_.sub(host_value(elems), b_.group_base()); });
  return limit;
}

bool KernelValues::is_domain_place(const Place& place) {
  return place.flat && place.flat->kind == Index::Kind::Linear &&
         place.flat->value == b_.group_base();
}

bool KernelValues::is_selected(const Place& place) const {
  if (current_ < 0 || plan_.sinks[current_].compaction < 0) return false;
  const auto p = positions_.find(plan_.sinks[current_].compaction);
  return p != positions_.end() && p->second.rank_phase == phase_ && place.flat &&
         place.flat->kind == Index::Kind::Varying && place.flat->value == p->second.rank;
}

KirValue KernelValues::once_for(bool is_group_level, const std::function<KirValue()>& make) {
  return is_group_level ? b_.in_group(make) : b_.in_kernel(make);
}

KirValue KernelValues::is_below_limit(const Index& linear) {
  return b_.lt(b_.column(), once_for(linear.is_group_level,
                                     [&] { return b_.convert(linear.limit, kI64, kU32); }));
}

KirValue KernelValues::index_u32(const Index& index) {
  if (index.kind == Index::Kind::Varying) return index.value;
  if (index.kind == Index::Kind::Uniform) return b_.convert(index.value, ComputeType::U32);
  if (!index.value.is_valid()) return b_.column();
  if (index.value == b_.group_base()) return b_.element();
  const auto base =
      once_for(index.is_group_level, [&] { return b_.convert(index.value, ComputeType::U32); });
  return b_.add(base, b_.column());
}

Index KernelValues::flat_of(const Place& place, const ir::Type& t) {
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

std::pair<Index, Index> KernelValues::row_col_of(const Place& place, const ir::Type& t,
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

Place KernelValues::broadcast_place(const Place& place, const ir::Type& operand,
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
Place KernelValues::place_of_operand(const ir::Op& op, std::size_t i, const Place& place) {
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

Place KernelValues::shifted_place(const ir::Op& op, const Place& place) {
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

Place KernelValues::gathered_place(const ir::Op& op, const Place& place) {
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
Index KernelValues::computed_index(const Place& place, KirValue element, KirValue pred) {
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
Index KernelValues::index_at(ir::ValueId idx, const Place& place, HostExprId extent) {
  if (type(idx).rank > 0 && is_element_level(place)) return new_index_at(idx, place, extent);
  // Computed once for all uses of the same element, so that they find it at the same place.
  const std::tuple key(idx.index(), place, extent.index());
  if (const auto known = index_memo_.find(key); known != index_memo_.end()) return known->second;
  const Index made = new_index_at(idx, place, extent);
  return index_memo_[key] = made;
}

Index KernelValues::new_index_at(ir::ValueId idx, const Place& place, HostExprId extent) {
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

}  // namespace cinch::codegen
