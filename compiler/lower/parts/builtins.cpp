#include <utility>

#include "compiler/lower/emitter.h"
#include "compiler/lower/parts/access.h"
#include "compiler/lower/parts/expressions.h"
#include "compiler/lower/prelude.h"
#include "runtime/core/check.h"

namespace cinch::lower {
using sema::BuiltinGroup;
using sema::BuiltinId;

Lowered BuiltinLowering::lower_fill(const Expr& e) {
  const Lowered v = value(e.args.at(0));
  if (v.lanes != 0) return {full(v, e.type, v.lanes), v.lanes};
  return {emit().fit(v.id, e.type)};
}

Lowered BuiltinLowering::lower_len(const Expr& e) {
  return {host_scalar(expr(e.args.at(0)).type.dims[0], e.type.dtype)};
}

ir::Attrs BuiltinLowering::draw_attrs(const Expr& e) const {
  return {.draw = {e.stream.value_or(e.site), e.shared}};
}

// Draws after or inside a loop also count the draws of its iterations.
std::vector<ValueId> BuiltinLowering::draw_operands(const Expr& e, std::vector<ValueId> operands) {
  if (e.stream) return operands;
  const auto before = cx().draws_of_loops.find(draw_space(e));
  const auto around = cx().draws_of_rounds.find(draw_space(e));
  ValueId offset;
  if (before != cx().draws_of_loops.end()) offset = num_draws(before->second);
  if (around != cx().draws_of_rounds.end()) {
    const ValueId rounds = around->second;
    offset = offset.is_valid() ? emit().map(ScalarOp::add, rounds, offset) : rounds;
  }
  if (offset.is_valid()) operands.push_back(offset);
  return operands;
}

namespace {

OpKind draw_kind(BuiltinId builtin) {
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

}  // namespace

// Inside a lambda every element draws an array of its own: one draw makes all of them, row by row.
Lowered BuiltinLowering::lower_random(const Expr& e) {
  ir::Attrs attrs = draw_attrs(e);
  attrs.size = e.size;
  const OpKind kind = draw_kind(e.builtin);
  if (cx().lanes.rank != 0 && kind == OpKind::random_index) limitation("random_index");
  const int lanes = cx().in_combiner ? 0 : cx().lanes.rank;
  const ValueId drawn = emit().emit(kind, draw_operands(e, {}), lifted(e.type, lanes), attrs);
  return {drawn, static_cast<std::uint8_t>(lanes)};
}

Lowered BuiltinLowering::lower_stochastic_round(const Expr& e) {
  Lowered x = value(e.args.at(0));
  const int lanes = cx().in_combiner ? 0 : cx().lanes.rank;
  x = {full({emit().convert(x.id, e.type.dtype), x.lanes}, e.type, lanes),
       static_cast<std::uint8_t>(lanes)};
  const Type type = with_dtype(emit().type(x.id), e.type.dtype);
  return {emit().emit(OpKind::stochastic_round, draw_operands(e, {x.id}), type, draw_attrs(e)),
          x.lanes};
}

// The exchange checks it, as all ranks have to know of one that does not exist. Saturated as an
// i32, so that its message shows the number.
ValueId BuiltinLowering::receiver(const Expr& e) {
  return emit().bitcast(emit().convert(uniform(e.args.at(1)), kI32), kU32);
}

// The received elements lie at the beginning of an array with room for the most; a selection of
// their places finds the count.
Lowered BuiltinLowering::lower_counted_collective(const Expr& e) {
  const bool gathers = e.builtin == BuiltinId::allgather;
  std::vector<ValueId> operands{uniform(e.args.at(0))};
  if (!gathers) operands.push_back(receiver(e));
  operands.push_back(host_scalar(emit().type(operands[0]).dims[0], kU32));
  const OpKind kind = gathers ? OpKind::all_gather_counted : OpKind::send_receive_counted;
  ir::Attrs attrs;
  if (!gathers) attrs.text = located(e.span, "`sendrecv`");
  const std::vector<ValueId> received = emit().emit_multi(
      kind, operands, {vector_type(e.type.dtype, e.size), scalar_type(kU32)}, attrs);
  const ValueId arrived = emit().map(ScalarOp::lt, emit().iota(e.size), received[1]);
  const ValueId index = MoveLowering(cx()).select_counted(arrived, e.index, e.type.dims[0], {});
  return {emit().gather(received[0], index)};
}

Lowered BuiltinLowering::lower_collective(const Expr& e) {
  if (e.size) return lower_counted_collective(e);
  ir::Attrs attrs;
  const ValueId x = uniform(e.args.at(0));
  switch (e.builtin) {
    case BuiltinId::allreduce:
      attrs.mean = e.is_mean;
      attrs.combiner = emit().combiner(e.scalar_op);
      return {emit().emit(OpKind::all_reduce, {x}, e.type, attrs)};
    case BuiltinId::allgather:
      return {emit().emit(OpKind::all_gather, {x}, e.type)};
    case BuiltinId::all_to_all:
      return {emit().emit(OpKind::all_to_all, {x}, e.type)};
    case BuiltinId::reduce_scatter:
      attrs.combiner = emit().combiner(ScalarOp::add);
      return {emit().emit(OpKind::reduce_scatter, {x}, e.type, attrs)};
    case BuiltinId::broadcast:
      attrs.index = e.index;
      return {emit().emit(OpKind::broadcast, {x}, e.type, attrs)};
    case BuiltinId::sendrecv:
      return {emit().send_receive(x, receiver(e), located(e.span, "`sendrecv`"))};
    default:
      break;
  }
  CINCH_BUG("not a collective");
}

Lowered BuiltinLowering::lower(const Expr& e) {
  switch (sema::builtin_info(e.builtin).group) {
    case BuiltinGroup::Map:
      if (e.builtin == BuiltinId::map) return LambdaLowering(cx()).lower_map(e);
      return e.builtin == BuiltinId::fill ? lower_fill(e) : lower_len(e);
    case BuiltinGroup::Reduce:
      return ReduceLowering(cx()).lower(e);
    case BuiltinGroup::Scan:
      return ScanSortLowering(cx()).lower_scan(e);
    case BuiltinGroup::Sort:
      return ScanSortLowering(cx()).lower_sort(e);
    case BuiltinGroup::Filter:
    case BuiltinGroup::Pack:
    case BuiltinGroup::Move:
    case BuiltinGroup::Matrix:
      return MoveLowering(cx()).lower(e);
    case BuiltinGroup::Random:
      return e.builtin == BuiltinId::stochastic_round ? lower_stochastic_round(e) : lower_random(e);
    case BuiltinGroup::Collective:
      return lower_collective(e);
  }
  CINCH_BUG("an operator of no group");
}

using sema::BuiltinId;

Lowered MoveLowering::lower_plain(const Expr& e, OpKind kind) {
  std::vector<ValueId> operands;
  for (ExprId arg : e.args) {
    if (arg) operands.push_back(uniform(arg));
  }
  return {emit().emit(kind, std::move(operands), e.type)};
}

Lowered MoveLowering::lower_concat(const Expr& e) {
  std::vector<Lowered> arrays;
  arrays.reserve(e.args.size());
  for (ExprId arg : e.args) arrays.push_back(value(arg));
  if (arrays.size() == 1) return arrays[0];
  if (differ_in_lanes(arrays)) return LaneArrays(cx()).join(e, arrays);
  std::vector<ValueId> parts;
  parts.reserve(arrays.size());
  for (const Lowered& array : arrays) parts.push_back(array.id);
  return {emit().emit(OpKind::concat, std::move(parts), e.type)};
}

// A constant number of bins fits on chip. Other histograms are sums into cells, with one more cell
// for values that belong to no bin.
Lowered MoveLowering::lower_histogram(const Expr& e) {
  const ValueId x = Checks(cx()).as_index(uniform(e.args.at(0)));
  HostExprPool& pool = emit().exprs();
  const HostExprId bins = e.type.dims[0];
  ValueId mask;
  if (e.args.size() > 1 && e.args[1]) mask = emit().spread(uniform(e.args[1]), emit().type(x));
  if (pool.is_const(bins)) return {emit().histogram(x, bins, mask)};
  const ValueId none = host_scalar(bins, kU32);
  ValueId cell = emit().map(ScalarOp::min, x, none);
  if (mask) cell = emit().select(mask, cell, none);
  const ValueId ones = emit().spread(emit().constant_int(kU32, 1), emit().type(cell));
  const Type cells = vector_type(kU32, pool.add(bins, emit().one()));
  const ValueId counts = emit().emit(OpKind::scatter_add, {cell, ones}, cells);
  return {emit().gather(counts, emit().iota(bins))};
}

// Inside a lambda [K] and [1, K] have the same representation, so only changes between them are
// possible there.
Lowered MoveLowering::lower_reshape(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  if (x.lanes != 0) return {full(x, e.type, x.lanes), x.lanes};
  // Sema, or a check before, proves that the sizes agree.
  ir::Attrs attrs;
  attrs.proved = !ir::element_counts_agree(cx().out.info, emit().type(x.id), e.type);
  return {emit().emit(OpKind::reshape, {x.id}, e.type, attrs)};
}

// Integers wrap at the width of their type: sums of a width that no target has are computed in 64
// bits, whose lower bits are right.
Lowered MoveLowering::lower_product(const Expr& e) {
  const DType dtype = e.type.dtype;
  if (!is_int(dtype) || dtype.bits == 32 || dtype.bits == 64) {
    return lower_plain(e, OpKind::matmul);
  }
  const DType wide = is_signed_int(dtype) ? kI64 : kU64;
  const ValueId a = emit().convert(uniform(e.args.at(0)), wide);
  const ValueId b = emit().convert(uniform(e.args.at(1)), wide);
  const ValueId unused = emit().constant_int(wide, 64 - dtype.bits);
  const ValueId moved = emit().map(ScalarOp::shl, emit().matmul(a, b), unused);
  return {emit().convert(emit().map(ScalarOp::shr, moved, unused), dtype)};
}

Lowered MoveLowering::lower_hadamard(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  const ValueId rows = full(x, e.type, x.lanes);
  return {emit().emit(OpKind::hadamard, {rows}, lifted(e.type, x.lanes)), x.lanes};
}

ValueId MoveLowering::select_counted(ValueId mask, std::uint32_t count, HostExprId len,
                                     HostExprId limit) {
  const std::vector<ValueId> found =
      emit().emit_multi(OpKind::nonzero, {mask}, {vector_type(kU32, len), scalar_type(kU32)},
                        {.index = count, .size = limit, .has_limit = limit.is_valid()});
  cx().counts[count] = found[1];
  return found[0];
}

ValueId MoveLowering::nonzero(const Expr& e, ValueId mask, HostExprId len) {
  return select_counted(mask, e.index, len, e.size);
}

Lowered MoveLowering::lower_filter(const Expr& e) {
  const ValueId x = uniform(e.args.at(0));
  const ValueId index = nonzero(e, uniform(e.args.at(1)), e.type.dims[0]);
  return {emit().gather(x, index)};
}

Lowered MoveLowering::lower_pack(const Expr& e) {
  ir::Attrs attrs;
  const bool is_pack = e.builtin == BuiltinId::pack;
  attrs.bits = e.type.dtype.bits;
  if (is_pack) {
    CINCH_CHECK(emit().exprs().is_const(e.size), "the width of pack is a constant");
    attrs.bits = static_cast<std::uint64_t>(emit().exprs().const_value(e.size).as_int());
  }
  const OpKind kind = is_pack ? OpKind::pack : OpKind::unpack;
  return {emit().emit(kind, {uniform(e.args.at(0))}, e.type, attrs)};
}

ValueId MoveLowering::scatter_index(const Expr& e, bool must_be_unique) {
  const ValueId index = Checks(cx()).as_index(uniform(e.args.at(1)));
  const HostExprId size = e.type.dims[0];
  if (!e.proved_in_bounds) {
    Checks(cx()).index({index}, emit().type(index), size,
                       located(e.span, e.axis == 1 ? "a column number of scatter is out of range"
                                                   : "an index of scatter is out of range"));
  }
  if (must_be_unique && !e.proved_unique) {
    emit().check_unique(index, size, located(e.span, "an index of scatter repeats"));
  }
  return index;
}

Lowered MoveLowering::lower_scatter(const Expr& e) {
  if (e.keep != sema::Keep::Only) return lower_scatter_keep(e);
  const ValueId values = uniform(e.args.at(0));
  const ValueId index = scatter_index(e, true);
  const ValueId zeros = emit().spread(emit().constant_int(e.type.dtype, 0), e.type);
  return {emit().emit(OpKind::scatter, {zeros, index, emit().stored_at(values, index, e.type)},
                      e.type)};
}

// Each cell finds the position of its value; one without any finds a zero behind the values.
Lowered MoveLowering::lower_scatter_keep(const Expr& e) {
  const ValueId values = uniform(e.args.at(0));
  const ValueId index = scatter_index(e, false);
  const PreludeContext context{"", "", cx().counts};
  const char* position = e.keep == sema::Keep::Last ? "last_position" : "first_position";
  const ValueId place = call_prelude(emit(), position, kU32, {index, e.type.dims[0]}, &context)[0];
  const ValueId stored = emit().stored_at(values, index, e.type);
  const char* read = e.type.rank == 1 ? "elements_or_zeros" : "rows_or_zeros";
  return {call_prelude(emit(), read, e.type.dtype, {stored, place}, &context)[0]};
}

// scatter_add, scatter_min, scatter_max. Rows are joined element by element.
Lowered MoveLowering::lower_scatter_join(const Expr& e) {
  const ValueId values = uniform(e.args.at(0));
  ValueId index = scatter_index(e, false);
  ir::Attrs attrs{.proved = cx().is_prelude && e.builtin == BuiltinId::scatter_add,
                  .in_rows = e.axis == 1};
  ValueId stored = emit().stored_at(values, index, e.type);
  Type cells = e.type;
  if (e.type.rank == 2) {
    HostExprPool& pool = emit().exprs();
    cells = vector_type(e.type.dtype, pool.mul(e.type.dims[0], e.type.dims[1]));
    const PreludeContext context{"", "", cx().counts};
    index = call_prelude(emit(), "places_of_rows", kU32, {index, e.type.dims[1]}, &context)[0];
    stored = emit().reshape(stored, with_dtype(emit().type(index), e.type.dtype));
  }
  if (e.builtin == BuiltinId::scatter_min) attrs.scalar_op = ScalarOp::min;
  if (e.builtin == BuiltinId::scatter_max) attrs.scalar_op = ScalarOp::max;
  const bool adds = e.builtin == BuiltinId::scatter_add;
  const OpKind kind = adds ? OpKind::scatter_add : OpKind::scatter_reduce;
  const ValueId joined = emit().emit(kind, {index, stored}, cells, attrs);
  return {e.type.rank == 1 ? joined : emit().reshape(joined, e.type)};
}

Lowered MoveLowering::lower(const Expr& e) {
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
      return AccessLowering(cx()).lower_slice(e);
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
      return {emit().convert(emit().iota(e.type.dims[0]), e.type.dtype)};
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
