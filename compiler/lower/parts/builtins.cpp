#include <fmt/format.h>

#include <utility>

#include "compiler/lower/emitter.h"
#include "compiler/lower/parts/body_lowering.h"
#include "compiler/lower/prelude.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"

namespace cinch::lower {
using sema::BuiltinGroup;
using sema::BuiltinId;

Lowered BodyLowering::lower_fill(const Expr& e) {
  const Lowered v = value(e.args.at(0));
  if (v.lanes != 0) return {full(v, e.type, v.lanes), v.lanes};
  return {emit_.fit(v.id, e.type)};
}

Lowered BodyLowering::lower_len(const Expr& e) {
  return {host_scalar(expr(e.args.at(0)).type.dims[0], e.type.dtype)};
}

ir::Attrs BodyLowering::draw_attrs(const Expr& e) const {
  return {.draw = {e.stream.value_or(e.site), e.shared}};
}

// Draws after or inside a loop also count the draws of its iterations.
std::vector<ValueId> BodyLowering::draw_operands(const Expr& e, std::vector<ValueId> operands) {
  if (e.stream) return operands;
  const auto before = draws_of_loops_.find(draw_space(e));
  const auto around = draws_of_rounds_.find(draw_space(e));
  ValueId offset;
  if (before != draws_of_loops_.end()) offset = num_draws(before->second);
  if (around != draws_of_rounds_.end()) {
    const ValueId rounds = around->second;
    offset = offset.is_valid() ? emit_.map(ScalarOp::add, rounds, offset) : rounds;
  }
  if (offset.is_valid()) operands.push_back(offset);
  return operands;
}

static OpKind draw_kind(BuiltinId builtin) {
  switch (builtin) {
    case BuiltinId::random:
      return OpKind::random;
    case BuiltinId::random_bits:
      return OpKind::random_bits;
    case BuiltinId::normal:
      return OpKind::normal;
    case BuiltinId::random_index:
      return OpKind::random_index;
    default:
      break;
  }
  CINCH_BUG("not a draw");
}

// Inside a lambda every element draws an array of its own: one draw makes all of them, row by row.
Lowered BodyLowering::lower_random(const Expr& e) {
  ir::Attrs attrs = draw_attrs(e);
  attrs.size = e.size;
  const OpKind kind = draw_kind(e.builtin);
  if (lanes_.rank != 0 && kind == OpKind::random_index) limitation("random_index");
  const int lanes = in_combiner_ ? 0 : lanes_.rank;
  const ValueId drawn = emit_.emit(kind, draw_operands(e, {}), lifted(e.type, lanes), attrs);
  return {drawn, static_cast<std::uint8_t>(lanes)};
}

Lowered BodyLowering::lower_stochastic_round(const Expr& e) {
  Lowered x = value(e.args.at(0));
  const int lanes = in_combiner_ ? 0 : lanes_.rank;
  x = {full({emit_.convert(x.id, e.type.dtype), x.lanes}, e.type, lanes),
       static_cast<std::uint8_t>(lanes)};
  const Type type = with_dtype(emit_.type(x.id), e.type.dtype);
  return {emit_.emit(OpKind::stochastic_round, draw_operands(e, {x.id}), type, draw_attrs(e)),
          x.lanes};
}

Lowered BodyLowering::lower_builtin(const Expr& e) {
  switch (sema::builtin_info(e.builtin).group) {
    case BuiltinGroup::Map:
      if (e.builtin == BuiltinId::map) return lower_map(e);
      return e.builtin == BuiltinId::fill ? lower_fill(e) : lower_len(e);
    case BuiltinGroup::Reduce:
      return lower_reduce(e);
    case BuiltinGroup::Scan:
      return lower_scan(e);
    case BuiltinGroup::Sort:
      return lower_sort(e);
    case BuiltinGroup::Filter:
    case BuiltinGroup::Pack:
    case BuiltinGroup::Move:
    case BuiltinGroup::Matrix:
      return lower_move(e);
    case BuiltinGroup::Random:
      return e.builtin == BuiltinId::stochastic_round ? lower_stochastic_round(e) : lower_random(e);
    case BuiltinGroup::Collective:
      return lower_collective(e);
  }
  CINCH_BUG("an operator of no group");
}

using sema::BuiltinId;

Lowered BodyLowering::lower_plain(const Expr& e, OpKind kind) {
  std::vector<ValueId> operands;
  for (ExprId arg : e.args) {
    if (arg) operands.push_back(uniform(arg));
  }
  return {emit_.emit(kind, std::move(operands), e.type)};
}

Lowered BodyLowering::lower_concat(const Expr& e) {
  auto arrays = mapped<Lowered>(e.args, [&](ExprId arg) { return value(arg); });
  if (arrays.size() == 1) return arrays[0];
  if (differ_in_lanes(arrays)) return join_lanes(e, arrays);
  auto parts = mapped<ValueId>(arrays, &Lowered::id);
  return {emit_.emit(OpKind::concat, std::move(parts), e.type, {.axis = e.axis})};
}

// A constant number of bins fits on chip. Other histograms are sums into cells, with one more cell
// for values that belong to no bin.
Lowered BodyLowering::lower_histogram(const Expr& e) {
  const ValueId x = as_index(uniform(e.args.at(0)));
  HostExprPool& pool = emit_.exprs();
  const HostExprId bins = e.type.dims[0];
  ValueId mask;
  if (e.args.size() > 1 && e.args[1]) mask = emit_.spread(uniform(e.args[1]), emit_.type(x));
  if (pool.is_const(bins)) return {emit_.histogram(x, bins, mask)};
  const ValueId none = host_scalar(bins, kU32);
  ValueId cell = emit_.map(ScalarOp::min, x, none);
  if (mask) cell = emit_.select(mask, cell, none);
  const ValueId ones = emit_.spread(emit_.constant_int(kU32, 1), emit_.type(cell));
  const Type cells = vector_type(kU32, pool.add(bins, emit_.one()));
  const ValueId counts = emit_.emit(OpKind::scatter_add, {cell, ones}, cells);
  return {emit_.gather(counts, emit_.iota(bins))};
}

// Inside a lambda [K] and [1, K] have the same representation, so only changes between them are
// possible there.
Lowered BodyLowering::lower_reshape(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  if (x.lanes != 0) return {full(x, e.type, x.lanes), x.lanes};
  // Sema, or a check before, proves that the sizes agree.
  ir::Attrs attrs;
  attrs.proved = !ir::element_counts_agree(out_.info, emit_.type(x.id), e.type);
  return {emit_.emit(OpKind::reshape, {x.id}, e.type, attrs)};
}

// Integers wrap at the width of their type: sums of a width that no target has are computed in 64
// bits, whose lower bits are right.
Lowered BodyLowering::lower_product(const Expr& e) {
  const DType dtype = e.type.dtype;
  if (!is_int(dtype) || dtype.bits == 32 || dtype.bits == 64) {
    return lower_plain(e, OpKind::matmul);
  }
  const DType wide = is_signed_int(dtype) ? kI64 : kU64;
  const ValueId a = emit_.convert(uniform(e.args.at(0)), wide);
  const ValueId b = emit_.convert(uniform(e.args.at(1)), wide);
  const ValueId unused = emit_.constant_int(wide, 64 - dtype.bits);
  const ValueId moved = emit_.map(ScalarOp::shl, emit_.matmul(a, b), unused);
  return {emit_.convert(emit_.map(ScalarOp::shr, moved, unused), dtype)};
}

Lowered BodyLowering::lower_hadamard(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  const ValueId rows = full(x, e.type, x.lanes);
  return {emit_.emit(OpKind::hadamard, {rows}, lifted(e.type, x.lanes)), x.lanes};
}

ValueId BodyLowering::select_counted(ValueId mask, std::uint32_t count, HostExprId len,
                                     HostExprId limit) {
  const std::vector<ValueId> found =
      emit_.emit_multi(OpKind::nonzero, {mask}, {vector_type(kU32, len), scalar_type(kU32)},
                       {.index = count, .size = limit, .has_limit = limit.is_valid()});
  counts_[count] = found[1];
  return found[0];
}

ValueId BodyLowering::nonzero(const Expr& e, ValueId mask, HostExprId len) {
  return select_counted(mask, e.index, len, e.size);
}

Lowered BodyLowering::lower_filter(const Expr& e) {
  const ValueId x = uniform(e.args.at(0));
  const ValueId index = nonzero(e, uniform(e.args.at(1)), e.type.dims[0]);
  return {emit_.gather(x, index)};
}

Lowered BodyLowering::lower_pack(const Expr& e) {
  ir::Attrs attrs;
  const bool is_pack = e.builtin == BuiltinId::pack;
  attrs.bits = e.type.dtype.bits;
  if (is_pack) {
    CINCH_CHECK(emit_.exprs().is_const(e.size), "the width of pack is a constant");
    attrs.bits = static_cast<std::uint64_t>(emit_.exprs().const_value(e.size).as_int());
  }
  const OpKind kind = is_pack ? OpKind::pack : OpKind::unpack;
  return {emit_.emit(kind, {uniform(e.args.at(0))}, e.type, attrs)};
}

ValueId BodyLowering::scatter_index(const Expr& e, bool must_be_unique) {
  const ValueId index = as_index(uniform(e.args.at(1)));
  const HostExprId size = e.type.dims[0];
  if (!e.proved_in_bounds) {
    check_index({index}, emit_.type(index), size,
                located(e.span, fmt::format("{} of {} is out of range",
                                            e.axis == 1 ? "a column number" : "an index",
                                            sema::builtin_info(e.builtin).name)));
  }
  if (must_be_unique && !e.proved_unique) {
    emit_.check_unique(index, size, located(e.span, "an index of scatter repeats"));
  }
  return index;
}

Lowered BodyLowering::lower_scatter(const Expr& e) {
  if (e.keep != sema::Keep::Only) return lower_scatter_keep(e);
  const ValueId values = uniform(e.args.at(0));
  const ValueId index = scatter_index(e, true);
  const ValueId zeros = emit_.spread(emit_.constant_int(e.type.dtype, 0), e.type);
  return {
      emit_.emit(OpKind::scatter, {zeros, index, emit_.stored_at(values, index, e.type)}, e.type)};
}

// Each cell finds the position of its value; one without any finds a zero behind the values.
Lowered BodyLowering::lower_scatter_keep(const Expr& e) {
  const ValueId values = uniform(e.args.at(0));
  const ValueId index = scatter_index(e, false);
  const PreludeContext context{"", "", counts_};
  const char* position = e.keep == sema::Keep::Last ? "last_position" : "first_position";
  const ValueId place = call_prelude(emit_, position, kU32, {index, e.type.dims[0]}, &context)[0];
  const ValueId stored = emit_.stored_at(values, index, e.type);
  const char* read = e.type.rank == 1 ? "elements_or_zeros" : "rows_or_zeros";
  return {call_prelude(emit_, read, e.type.dtype, {stored, place}, &context)[0]};
}

// scatter_add, scatter_min, scatter_max. Rows are joined element by element.
Lowered BodyLowering::lower_scatter_join(const Expr& e) {
  const ValueId values = uniform(e.args.at(0));
  ValueId index = scatter_index(e, false);
  ir::Attrs attrs{.proved = is_prelude_ && e.builtin == BuiltinId::scatter_add,
                  .in_rows = e.axis == 1};
  ValueId stored = emit_.stored_at(values, index, e.type);
  Type cells = e.type;
  if (e.type.rank == 2) {
    HostExprPool& pool = emit_.exprs();
    cells = vector_type(e.type.dtype, pool.mul(e.type.dims[0], e.type.dims[1]));
    const PreludeContext context{"", "", counts_};
    index = call_prelude(emit_, "places_of_rows", kU32, {index, e.type.dims[1]}, &context)[0];
    stored = emit_.reshape(stored, with_dtype(emit_.type(index), e.type.dtype));
  }
  if (e.builtin == BuiltinId::scatter_min) attrs.scalar_op = ScalarOp::min;
  if (e.builtin == BuiltinId::scatter_max) attrs.scalar_op = ScalarOp::max;
  const bool adds = e.builtin == BuiltinId::scatter_add;
  const OpKind kind = adds ? OpKind::scatter_add : OpKind::scatter_reduce;
  const ValueId joined = emit_.emit(kind, {index, stored}, cells, attrs);
  return {e.type.rank == 1 ? joined : emit_.reshape(joined, e.type)};
}

Lowered BodyLowering::lower_move(const Expr& e) {
  switch (e.builtin) {
    case BuiltinId::filter:
      return lower_filter(e);
    case BuiltinId::nonzero:
      return {nonzero(e, uniform(e.args.at(0)), e.type.dims[0])};
    case BuiltinId::pack:
    case BuiltinId::unpack:
      return lower_pack(e);
    case BuiltinId::concat:
      return lower_concat(e);
    case BuiltinId::slice:
      return lower_slice(e);
    case BuiltinId::scatter:
      return lower_scatter(e);
    case BuiltinId::scatter_add:
    case BuiltinId::scatter_min:
    case BuiltinId::scatter_max:
      return lower_scatter_join(e);
    case BuiltinId::reshape:
      return lower_reshape(e);
    case BuiltinId::transpose:
      return lower_plain(e, OpKind::transpose);
    case BuiltinId::chunk:
      return lower_plain(e, OpKind::chunk);
    case BuiltinId::unchunk:
      return lower_plain(e, OpKind::unchunk);
    case BuiltinId::iota:
      return {emit_.convert(emit_.iota(e.type.dims[0]), e.type.dtype)};
    case BuiltinId::histogram:
      return lower_histogram(e);
    case BuiltinId::matmul:
      return lower_product(e);
    case BuiltinId::orthonormalize:
      return lower_plain(e, OpKind::orthonormalize);
    case BuiltinId::hadamard:
      return lower_hadamard(e);
    default:
      break;
  }
  CINCH_BUG("an operator without a lowering");
}

}  // namespace cinch::lower
